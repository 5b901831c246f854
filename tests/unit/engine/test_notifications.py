# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import unittest

from tracon_watcher.engine import inventory_cache
from tracon_watcher.engine import listener
from tracon_watcher.inventory import cloud


BUILD_FAILED = 'compute_task.build_instances.error'


def build(reason='NoValidHost', specs=()):
    """Return what Nova's conductor tells of a VM that it could not build."""
    def wrapped(**fields):
        return {'nova_object.name': 'Payload', 'nova_object.data': fields}
    return {'instance_uuid': 'a', 'state': 'error', 'reason': wrapped(exception=reason),
            'request_spec': wrapped(flavor=wrapped(
                name='small', extra_specs=None if specs is None else dict(specs)))}


class EndpointTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.reported = []
        self.residency = inventory_cache.InventoryCache()
        self.residency.replace(cloud.Inventory({}, {}, (), {}, 0.0))
        self.endpoint = listener.Endpoint(
            self.residency, lambda event, error: self.reported.append((event, str(error))))

    def tell(self, event, payload):
        self.endpoint.info({}, 'nova', event, {'nova_object.data': payload}, {})

    def test_one_that_cannot_be_read_brings_a_listing_and_is_told_once(self):
        for _again in range(100):
            self.tell('instance.create.end', {'uuid': 'a', 'flavor': 5})
        self.assertEqual(['instance.create.end'], [event for event, _error in self.reported])
        self.assertTrue(self.residency.repair_wanted.is_set())
        self.tell('instance.rebuild.end', {'uuid': 'a', 'flavor': 5})
        self.assertEqual(2, len(self.reported))

    def test_one_without_a_host_is_not_taken_for_a_vm_on_none(self):
        self.tell('instance.create.end', {'uuid': 'a', 'state': 'active', 'image_uuid': 'i'})
        self.assertEqual({}, self.residency.current().servers)
        self.assertTrue(self.residency.repair_wanted.is_set())

    def test_what_is_told_is_bounded(self):
        for number in range(1000):
            self.tell('instance.resize_finish.end', {'uuid': 'a', 'flavor': 5})
            self.endpoint._reported.add((str(number), 'KeyError'))
        self.assertEqual(1, len(self.reported))
        self.tell('instance.rebuild.end', {'uuid': 'a', 'flavor': 5})
        self.assertEqual(1, len(self.reported))

    def test_a_build_that_failed_triggers_an_audit(self):
        posted, slept = [], []
        trigger = listener.AuditTrigger(lambda: posted.append(len(slept)), slept.append)
        self.endpoint = listener.Endpoint(
            self.residency, lambda event, error: self.reported.append((event, str(error))),
            trigger=trigger)
        self.assertTrue(self.endpoint.filter_rule.match(
            {}, 'nova', BUILD_FAILED, {}, {}))
        self.assertFalse(self.endpoint.filter_rule.match(
            {}, 'nova', 'compute_task.migrate_server.error', {}, {}))
        for event, payload in (
                (BUILD_FAILED, build(specs={'tracon:class': 'background'})),
                (BUILD_FAILED, build('MaxRetriesExceeded')), (BUILD_FAILED, {}),
                (BUILD_FAILED, {**build(), 'request_spec': None}),
                *[(BUILD_FAILED, {**build(), 'request_spec': [1]})] * 9,
                ('instance.create.error', build())):
            self.endpoint.error({}, 'nova', event, {'nova_object.data': payload}, {})
        trigger.trigger()
        self.assertEqual(([], False), (posted, trigger.wanted.is_set()))
        self.assertEqual([BUILD_FAILED], [event for event, _error in self.reported])
        self.assertFalse(self.residency.repair_wanted.is_set())
        for reason in ('NoValidHost', 'NoValidHost_Remote'):
            for _each in range(3):
                self.endpoint.error({}, 'nova', BUILD_FAILED,
                                    {'nova_object.data': build(reason, None)}, {})
            self.assertTrue(trigger.wanted.is_set())
            trigger.trigger()
            trigger.trigger()
        # One audit for those that come together, after a pause.
        self.assertEqual([1, 2], posted)

    def test_an_audit_that_is_not_triggered_stays_due(self):
        outcomes = [OSError, None]

        def post():
            outcome = outcomes.pop(0)
            if outcome is not None:
                raise outcome
        trigger = listener.AuditTrigger(post, lambda _seconds: None)
        trigger.tell(build())
        self.assertRaises(OSError, trigger.trigger)
        trigger.trigger()
        trigger.trigger()
        self.assertEqual([], outcomes)

    def test_without_a_trigger_builds_that_failed_are_passed_over(self):
        self.endpoint.error({}, 'nova', BUILD_FAILED, {'nova_object.data': build()}, {})
        self.assertEqual([], self.reported)

    def test_one_that_can_be_read_arrives(self):
        self.tell('instance.create.end', {'uuid': 'a', 'host': 'h1', 'image_uuid': 'i'})
        self.assertEqual('h1', self.residency.current().servers['a'].host)
        self.assertEqual([], self.reported)

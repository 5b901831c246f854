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

"""Audits of real guests that wait at their own limits, then beside neighbours as well.

Nova limits the guests as their flavors say, Ceilometer counts, and Watcher audits. They are on one
host each, or both on one, with an empty host to which an audit can move what it takes for a
victim. ``TRACON_AUDITS`` says how many audits are made while own limits are the only cause, each
on the data of another poll.
"""

import os
import time

from tests.functional.cloud import base
from tracon_lab.testbed import programs

AUDITS = int(os.environ.get('TRACON_AUDITS', 10))
LOOP = programs.Unit(cpu_seconds=0.005)
READER = programs.Unit(reads=1)
MINDS = {'tracon:max_slowdown': '1.3'}
FLAVORS = {
    'quota': {**MINDS, 'quota:cpu_quota': '30000', 'quota:cpu_period': '100000'},
    # So few that a guest is at it on a busy machine as well. Its slowdown has no limit of its own,
    # since others are to come to its host in the end.
    'reads': {'quota:disk_read_iops_sec': '20'},
    'free': MINDS}
#: Flavor and program of each VM: their owners' limits are all that they wait for.
CAST = {'capped': ('quota', LOOP), 'throttled': ('reads', READER)}
NEIGHBOURS = ('other', 'still')
#: Cores; a guest that boots takes all of one.
MOST_OF_READER = 0.3


class LimitedGuests(base.ProductCase):
    """Both guests with their programs; which host each is on, by place, is left open."""

    patience = 240.0
    places = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        compute = cls.cloud.connection().compute
        usual = compute.find_flavor('tracon.small', ignore_missing=False)
        for name, specs in FLAVORS.items():
            made = compute.create_flavor(name=f'limited.{name}', ram=usual.ram, vcpus=1,
                                         disk=usual.disk)
            compute.create_flavor_extra_specs(made, specs)
        for name, (flavor, unit) in CAST.items():
            cls.begin(name, unit, cls.places[name], flavor=f'limited.{flavor}')
        cls.session = cls.cloud.connection().session

    def ask(self, service, path, **how):
        """Return what an API answers."""
        root = self.session.get_endpoint(service_type=service, interface='public').rstrip('/')
        call = self.session.post if 'json' in how else self.session.get
        answer = call(root + path, headers={'OpenStack-API-Version': f'{service} latest'}, **how)
        return answer.json()

    def vms(self):
        """Return what operators see of all VMs, by name."""
        return {one['name']: self.ask('interference', f'/v1/vms/{one["uuid"]}')['vm']
                for one in self.ask('interference', '/v1/vms')['vms']}

    def limits(self):
        """Return how often each own limit was reached, once own limits are the only cause.

        While the reader is known by its boot, it is a neighbour that takes the core.
        """
        vms = self.vms()
        found = {name: limit['reached'] for name, one in vms.items()
                 for limit in one['own_limits']}
        if not CAST.keys() <= found.keys() or any((found[name] or 0.0) <= 0.5 for name in CAST):
            return None
        taken = vms['throttled']['demand']['guest_cpu']
        return found if taken is not None and taken < MOST_OF_READER else None

    def newer(self, time):
        """Return when the guest at its quota was polled last, None while that is this time."""
        found = self.vms()['capped']['updated_at']
        return None if found == time else found

    def moves(self):
        """Audit, and return what it would move: VM, from, to."""
        audit = self.ask('infra-optim', '/v1/audits', json={
            'audit_type': 'ONESHOT', 'goal': 'interference', 'strategy': 'tracon_interference'})
        uuid = audit['uuid']

        def ended():
            found = self.ask('infra-optim', f'/v1/audits/{uuid}')
            return found if found['state'] in ('SUCCEEDED', 'FAILED', 'CANCELLED') else None
        found = self.wait('the audit', ended)
        self.assertEqual('SUCCEEDED', found['state'], found['status_message'])
        names = {one.id: name for name, one in self.servers.items()}
        return [(names[wanted['resource_id']], wanted['source_node'], wanted['destination_node'])
                for plan in self.ask('infra-optim', f'/v1/action_plans/?audit_uuid={uuid}')[
                    'action_plans']
                for action in self.ask(
                    'infra-optim', f'/v1/actions/detail?action_plan_uuid={plan["uuid"]}')[
                        'actions']
                for wanted in [action['input_parameters']] if 'destination_node' in wanted]

    def audit_own_limits(self):
        """Audit while own limits are the only cause; no VM is to be moved or blamed."""
        self.wait('both limits being reached', self.limits)
        moved, predicted, judged_at = [], [], None
        for _number in range(AUDITS):
            judged_at = self.wait('new data', lambda: self.newer(judged_at))
            moved += self.moves()
            for name, one in self.vms().items():
                # What is not surely its own is unknown, and no neighbour is to blame for it.
                observed = one['slowdown']['observed']
                self.assertTrue(observed is None or observed < 1.3, (name, one))
                self.assertFalse(one['in_breach'], (name, one))
                # Nor is any harm predicted beyond what they wait anyway.
                predicted.append(one['slowdown']['predicted'])
        self.assertEqual([], moved)
        known = [slowdown for slowdown in predicted if slowdown is not None]
        self.assertGreaterEqual(len(known), AUDITS)
        self.assertLess(max(known), 1.3)
        print(f'{AUDITS} audits moved no VM')


class ApartTestCase(LimitedGuests):

    port_base = 29800
    places = {'capped': 0, 'throttled': 1}

    def test_own_limits_move_no_vm_and_a_neighbour_does(self):
        self.audit_own_limits()
        # Two more want all of the core, and have no limit of their own.
        for name in NEIGHBOURS:
            self.begin(name, LOOP, flavor='limited.free')
        started = time.monotonic()
        found = self.wait('a move', lambda: self.moves() or None)
        print(f'{time.monotonic() - started:.0f} s after a neighbour began, an audit recommended '
              f'{found}')
        self.assertNotIn('throttled', [name for name, _source, _destination in found])


class TogetherTestCase(LimitedGuests):

    port_base = 30100
    places = {'capped': 0, 'throttled': 0}

    def test_own_limits_move_no_vm(self):
        self.audit_own_limits()

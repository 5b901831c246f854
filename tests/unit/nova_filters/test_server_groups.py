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

"""Soft server groups beside the interference weigher, in Nova's own sum of weights."""

import pathlib
import re
import time

import nova.conf
from nova import objects
from nova.scheduler import weights
from nova.scheduler.weights import affinity

from nova_filters import interference_weigher
from nova_filters import worker
from tests import synthetic
from tests.unit.nova_filters import base
from tracon_watcher.conf import nova_filters as options
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits

SAMPLE = pathlib.Path(__file__).parents[3] / 'etc' / 'samples' / 'nova-scheduler.conf'
CONF = nova.conf.CONF


class SoftAntiAffinityTest(base.JudgeCase):
    """Two replicas of a group: the first does next to nothing; on the other host is a stranger."""

    def setUp(self):
        super().setUp()
        default, = (one.default for one in options.POLICY if one.name == 'weight_multiplier')
        self.multiplier = default
        for name in ('soft_affinity', 'soft_anti_affinity'):
            self.addCleanup(CONF.clear_override, f'{name}_weight_multiplier', 'filter_scheduler')

    def chosen(self, share, multiplier, limit=None):
        """Return the host of the second replica.

        :param share: of a heavy load, which the stranger does
        :param multiplier: of Nova's weigher of such groups
        :param limit: on the slowdown of the stranger
        """
        CONF.set_override('soft_anti_affinity_weight_multiplier', multiplier, 'filter_scheduler')
        stranger = cluster.Resident('stranger', share * base.BUSY,
                                    limits.NONE if limit is None else limits.Limits(limit))
        self.write({}, more=[
            cluster.Host(name, (one,), synthetic.HOST_TYPE, cluster.LOCAL, time.time(), 1)
            for name, one in (('member', cluster.Resident('first', 0.02 * base.BUSY)),
                              ('other', stranger))])
        judge = self.judge(mode='weigh', weight_multiplier=self.multiplier)
        hosts = [base.host_state('member', ['first']), base.host_state('other', ['stranger'])]
        spec = base.request_spec(instance_group=objects.InstanceGroup(
            policy='soft-anti-affinity', members=['first']))
        ours = interference_weigher.InterferenceWeigher()
        ours._worker = type('Made', (), {'judge': lambda self: judge})()
        latest, worker._latest = worker._latest, None
        self.addCleanup(setattr, worker, '_latest', latest)
        found = weights.HostWeightHandler().get_weighed_objects(
            [affinity.ServerGroupSoftAntiAffinityWeigher(), ours], hosts, spec)
        return found[0].obj.host

    def test_with_novas_multiplier_a_light_stranger_outvotes_the_group(self):
        # What the help of weight_multiplier and the guide say.
        self.assertEqual('other', self.chosen(0.05, 1.0))
        self.assertEqual('member', self.chosen(0.2, 1.0))

    def test_as_the_sample_states_the_group_is_in_force(self):
        text = SAMPLE.read_text()
        for name in ('soft_affinity', 'soft_anti_affinity'):
            stated = float(re.search(fr'^{name}_weight_multiplier = (.+)$', text, re.M)[1])
            self.assertEqual(self.multiplier, stated)
        for share in (0.05, 0.2, 0.4, 1.0):
            self.assertEqual('other', self.chosen(share, stated), share)
        self.assertEqual('other', self.chosen(1.0, stated, limit=1.01))

    def test_with_half_of_it_a_breach_outvotes_the_group_and_no_harm_does(self):
        self.assertEqual('other', self.chosen(1.0, self.multiplier / 2))
        self.assertEqual('member', self.chosen(1.0, self.multiplier / 2, limit=1.01))

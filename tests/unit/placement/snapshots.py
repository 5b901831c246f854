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

"""Snapshots to compare and to draw from (synthetic)."""

import dataclasses
import math

from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot

TIMES = (0.0, 60.0, 61.5, 120.25)
_LEARNT = (queues.UNCHECKED, queues.LearnedParameters(1.4, 2.0, 0.15, 40.0, 0.05, 0.2, 0.8))


def same(test, expected, found):
    """Assert that two snapshots are equal to the last bit."""
    for field in dataclasses.fields(cluster.ClusterState):
        one, other = (getattr(of.cluster, field.name) for of in (expected, found))
        if isinstance(one, np.ndarray):
            test.assertEqual(one.dtype, other.dtype, field.name)
            np.testing.assert_array_equal(one, other, field.name)
        elif field.name == 'history':
            test.assertEqual(described(one), described(other))
        else:
            test.assertEqual(one, other, field.name)
    test.assertEqual(expected.identity, found.identity)
    test.assertEqual(expected.maximum_age_seconds, found.maximum_age_seconds)
    test.assertEqual(expected.learnt, found.learnt)
    test.assertEqual(expected.pools, found.pools)
    test.assertEqual(expected.cluster.resident_index, found.cluster.resident_index)


def described(history):
    """Return history in a form that can be compared."""
    return {key: (one.mean.tolist(), one.deviation.tolist(), one.count, one.source, one.own_wait,
                  str(one.storage_wait))
            for key, one in history.items()}


def whole(content):
    """Return what the whole text of a snapshot gives."""
    return snapshot.decode(snapshot.lines(content), 'it')


def drawn(identity=(3, 7)):
    """Strategy: a snapshot of some of six hosts and eight VMs, as its text gives it."""
    return built(identity).map(whole)


@strategies.composite
def built(draw, identity=(3, 7)):
    """Strategy: the same, as it is built."""
    names = draw(strategies.permutations([f'host{index}' for index in range(6)]))
    names = names[:draw(strategies.integers(0, len(names)))]
    residents = {name: [] for name in names}
    for index in range(8):
        place = draw(strategies.sampled_from([None, *names]))
        if place is not None:
            residents[place].append(_vm(draw, f'vm{index}'))
    hosts = [cluster.Host(
        name, tuple(vms), draw(strategies.sampled_from([None, synthetic.HOST_TYPE, 'other'])),
        draw(strategies.sampled_from([None, cluster.LOCAL, 'pool', 'other pool'])),
        draw(strategies.sampled_from(TIMES)),
        draw(strategies.sampled_from([None, 2, 64]))) for name, vms in residents.items()]
    history = {key: newcomer_profiles.Profile(np.full(4,
                                                      draw(strategies.sampled_from([1.0, 2.5]))),
                                              np.zeros(4), draw(strategies.integers(1, 2)),
                                              key or 'all VMs',
                                              own_wait=draw(strategies.sampled_from([0.0, 0.5])),
                                              storage_wait=draw(
                                                  strategies.sampled_from([math.nan, 0.5])))
               for key in draw(strategies.sets(strategies.sampled_from(['', 'small', 'p|f|i'])))}
    state = cluster.build(hosts, history, identity[1], draw(strategies.sampled_from(TIMES)))
    return snapshot.Snapshot(state, draw(strategies.sampled_from([60.0, 900.0])), identity[0],
                             draw(strategies.dictionaries(
                                 strategies.sampled_from(['', 'other']),
                                 strategies.sampled_from(_LEARNT))),
                             draw(strategies.dictionaries(
                                 strategies.sampled_from(['pool', 'other pool']),
                                 strategies.sampled_from([queues.Pool(0.01),
                                                          queues.Pool(0.002, 4.0)]))))


def _vm(draw, uuid):
    profile = draw(strategies.sampled_from([
        None, np.array([100.0, 50.0, 0.4, 0.1]), np.array([100.0, 50.0, 0.4, 0.2])]))
    limit = draw(strategies.sampled_from([limits.NONE, limits.Limits(1.5, 0.5),
                                          limits.Limits(min_iops_ratio=0.5)]))
    return cluster.Resident(uuid, profile, limit, draw(strategies.sampled_from(
        [None, cluster.LOCAL, 'pool', cluster.UNKNOWN])),
        draw(strategies.sampled_from([0.0, 0.25, 0.7])), draw(strategies.sampled_from([1, 4])),
        draw(strategies.sampled_from([math.nan, 0.0, 0.25])))

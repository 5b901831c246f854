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

"""The synthetic cloud of which the user's guide shows what commands say."""

import datetime
import json
import math
import time
import uuid

import numpy as np

from tracon_watcher.engine import idle_shares
from tracon_watcher.engine import own_limits
from tracon_watcher.engine import probes
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import explanation
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan as audits
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner
from tracon_watcher.placement import queues

SHOP, LAB = '5f0e6c1d6a2b4f3e8d7c9b0a1e2f3a4b', '9c8b7a6d5e4f40312233445566778899'
AUDIT = '2f4f9a58-6a0b-4d55-9a3e-d4a0c6b85e11'
REQUEST = 'req-7f1c2d7e-0b6a-4d55-9a3e-3c1f4f0f5a21'

#: By vCPUs.
FLAVORS = {1: 'm1.small', 2: 'm1.medium'}
IMAGE = 'c3e8f0a1-5d27-4b96-8f14-2a7b9d0e6c35'

#: By host: name, project, demand, vCPUs, part of its time that each waits for storage, limit, and
#: what the counters show of each VM.
HOSTS = {
    'compute-1': (('shop-db', SHOP, (60, 30, .64, .10), 2, .05, 1.5, 1.87),
                  ('shop-web', SHOP, (5, 5, .40, .05), 1, .02, None, 1.41),
                  ('etl', LAB, (400, 150, 1.55, .45), 2, .00, None, 1.82)),
    'compute-2': (('wiki', LAB, (20, 10, .70, .10), 2, .10, None, 1.27),
                  ('ci-runner', LAB, (40, 60, 1.20, .15), 2, .10, None, None)),
    'compute-3': (('cache', SHOP, (2, 1, .75, .05), 2, .01, 1.1, 1.0),),
    'compute-4': (('legacy', LAB, (10, 10, .10, .02), 1, .05, None, None),)}
#: Of the last one it is not known how many cores it has.
TYPES = {'compute-4': 'old'}
LEARNT = {'kvm-2': queues.LearnedParameters(1.05, 6.0, 0.2, 212.0, 0.113, 0.264, 0.79)}


def idle():
    """Return idle shares of two days: fewer by day, and for one host no memory and no disks."""
    hours = np.arange(498_816, 498_864)
    by_day = np.sin((hours % 24 - 2) / 24 * np.pi) ** 4
    most = np.array([[.95, .40, .90], [.90, .60, .95], [.98, .80, .99]])
    values = most - by_day[:, np.newaxis, np.newaxis] * np.array([.5, .1, .4])
    values[:, 2, 1:] = np.nan
    return idle_shares.IdleShares(tuple(hours.tolist()), tuple(HOSTS)[:3], values)


def identity(name):
    """Return the uuid of a VM by its name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def cloud():
    """Return the view."""
    now = time.time()
    rows = [(host, *vm) for host, vms in HOSTS.items() for vm in vms]
    state = cluster.build([cluster.Host(name, tuple(
        cluster.Resident(identity(vm), np.array(demand, dtype=float),
                         limits.NONE if limit is None else limits.Limits(limit), vcpus=vcpus,
                         storage_wait=wait)
        for vm, _project, demand, vcpus, wait, limit, _observed in vms), TYPES.get(name, 'kvm-2'),
        updated_at=now, cores=None if name in TYPES else 2) for name, vms in HOSTS.items()],
        newcomer_profiles.learn(
            np.array([demand for _host, _vm, _project, demand, *_rest in rows], dtype=float),
            [(project, FLAVORS[vcpus], IMAGE)
             for _host, _vm, project, _demand, vcpus, *_rest in rows]), 1203, now)
    judged = assessment.Assessor(state, assessment.Settings(
        maximum_age=900.0, learnt=LEARNT))
    return views.View(
        4, judged, judged,
        {identity(vm): views.VM(identity(vm), vm, project, host, FLAVORS[vcpus], IMAGE)
         for host, vm, project, _demand, vcpus, *_rest in rows},
        np.array([np.nan if row[-1] is None else row[-1] for row in rows]), 0.08, now,
        own_limits={identity('shop-db'): (own_limits.OwnLimit('CPU quota', 30.0, '%', 0.12),)},
        felt={'compute-1': {
            'connection': probes.RelativeReading(probes.QUIET, now, 1.02, 1.0),
            'memory': probes.RelativeReading(probes.CONTENDED, now, 1.62, 1.48),
            'storage': probes.RelativeReading(probes.QUIET, now, 0.97, 1.0)}}, idle=idle())


def decision(view):
    """Return the decision on the VM ``ci-runner``, as nova-scheduler would have recorded it."""
    made = explanation.of_now(view.assessor, identity('ci-runner'), view.updated_at)
    for place, host in enumerate(made['hosts']):
        host.update(mode='enforce', weight=round(1 / (2 + place), 3))
    made['newcomer']['source'] = 'lab|m1.small|debian-13'
    return json.loads(json.dumps({
        **made, 'id': str(uuid.UUID(int=7)), 'request': REQUEST, 'operation': 'create',
        'snapshot': [view.epoch, view.assessor.cluster.version], 'outcome': 'refused'}))


def audit(view):
    """Return what an audit would have told of the cloud, where two VMs cannot move."""
    rules = placement_constraints.Constraints(
        immovable={identity('etl'): 'is locked'},
        closed={'compute-3': 'its compute service is disabled: new disks'},
        cooldown_until={identity('shop-web'): view.updated_at + 900})
    made = audits.audit_document(
        planner.plan_moves(view.assessor, rules, plan.Parameters(explained=20), view.updated_at),
        AUDIT, view.updated_at)
    # Five days before the migration that helped the same VM.
    return {**made, 'past': [{
        'vm': identity('etl'), 'host': 'compute-1', 'ends': [identity('shop-db')],
        'at': moves(view)[0]['ended_at'] - 5 * 86400,
        'effects': [{'vm': identity('shop-db'), 'before': 2.31, 'after': 2.05}]}]}


def episode(view):
    """Return an episode for the sake of ``shop-db``, as the engine would have recorded it."""
    began = moves(view)[2]['ended_at'] - 86400.0
    return {'host': 'compute-1', 'resource': 'processor', 'vm': identity('shop-db'),
            'began_at': began, 'ended_at': began + 340.0, 'before': 2.4, 'least': 0.3,
            'slowdowns_before': {identity('shop-db'): 2.62},
            'slowdowns_after': {identity('shop-db'): 2.31}}


def moves(view):
    """Return three moves of the last two whole weeks, as the engine would have recorded them."""
    day = datetime.datetime.fromtimestamp(view.updated_at, datetime.timezone.utc).replace(
        hour=0, minute=0, second=0, microsecond=0)
    monday = day.timestamp() - day.weekday() * 86400
    return [
        _move(1, 'wiki', 'compute-1', 'compute-2', monday - 3 * 86400, 'helped', (0.65, 0.58), (
            ('shop-db', 1.5, (1.90, 2.05, 2.22), (1.29, 1.36, 1.45), (1.41, 1.44)),
            ('wiki', None, (1.57, 1.66, 1.77), (1.26, 1.31, 1.37), (1.29, 1.27)))),
        _move(2, 'ci-runner', 'compute-3', 'compute-2', monday - 5 * 86400, 'helped',
              (0.21, 0.19), (
                  ('cache', 1.1, (1.17, 1.24, 1.32), (1.00, 1.00, 1.00), (1.02, 1.16)),
                  ('ci-runner', None, (1.31, 1.36, 1.43), (1.30, 1.36, 1.44), (1.38, None)))),
        _move(3, 'shop-web', 'compute-2', 'compute-1', monday - 9 * 86400, 'did_not_help',
              (0.12, -0.02), (
                  ('shop-web', None, (1.44, 1.52, 1.61), (1.29, 1.35, 1.42), (1.55, None)),))]


def _move(number, vm, source, destination, end, verdict, gain, changes):
    def prediction(bounds, limit):
        low, mean, high = bounds
        return {'lower': low, 'predicted': mean, 'upper': high,
                'in_breach': limit is not None and low > limit}

    return {
        'id': f'move-{number}', 'vm': identity(vm), 'audit': AUDIT, 'source': source,
        'destination': destination, 'state': 'succeeded', 'reason': 'ends 1 breaches',
        'decided_at': end - 90, 'started_at': end - 60, 'ended_at': end,
        'changes': [{'vm': identity(one), 'limit': limit, 'relieved': True,
                     'before': prediction(before, limit), 'after': prediction(after, limit)}
                    for one, limit, before, after, _measured in changes],
        'outcomes': [{
            'delay': delay, 'due_at': end + delay, 'measured_at': end + delay + 20,
            'verdict': verdict, 'predicted': gain[0], 'measured': gain[1],
            'slowdowns': {identity(one): math.nan if measured[place] is None else measured[place]
                          for one, _limit, _before, _after, measured in changes}}
                     for place, delay in enumerate((300, 86400))]}

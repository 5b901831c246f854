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

import dataclasses
import json
import time
import uuid

import numpy as np

from tests import synthetic
from tracon_watcher.engine import own_limits
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import explanation
from tracon_watcher.placement import limits

SHOP, LAB = '5f0e6c1d6a2b4f3e8d7c9b0a1e2f3a4b', '9c8b7a6d5e4f40312233445566778899'
REQUEST = 'req-7f1c2d7e-0b6a-4d55-9a3e-3c1f4f0f5a21'

#: By host: name, project, demand, limit and what the counters show of each VM.
HOSTS = {
    'compute-1': (('shop-db', SHOP, (60, 30, .25, .05), 1.6, 1.87),
                  ('shop-web', SHOP, (5, 5, .20, .02), None, 1.52),
                  ('etl', LAB, (400, 150, .30, .15), None, 1.21)),
    'compute-2': (('wiki', LAB, (20, 10, .10, .02), None, 1.12),
                  ('ci-runner', LAB, (40, 60, .30, .05), None, None)),
    'compute-3': (('cache', SHOP, (2, 1, .15, .02), 1.1, 1.0),),
    'compute-4': (('legacy', LAB, (10, 10, .10, .02), None, None),)}
#: No model was fitted for the type of the last one.
TYPES = {'compute-4': 'old'}


def identity(name):
    """Return the uuid of a VM by its name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def models():
    """Return the models: as invented as the cloud, and mild."""
    def mild(model):
        return dataclasses.replace(
            model, host_type='kvm-2', coefficients=model.coefficients * .8,
            training={'points': 312, 'synthetic': True}, errors={
                'by_background': {'mean': .061, 'standard_deviation': .05, 'points': 312},
                'by_target_and_background': {'mean': .113, 'standard_deviation': .09,
                                             'points': 312}})

    return {'kvm-2': assessment.Models(*(mild(synthetic.model(response, 'kvm-2'))
                                         for response in ('slowdown', 'iops_ratio')))}


def cloud():
    """Return the view."""
    now = time.time()
    state = cluster.build([cluster.Host(name, tuple(
        cluster.Resident(identity(vm), np.array(demand, dtype=float),
                         limits.NONE if limit is None else limits.Limits(limit))
        for vm, _project, demand, limit, _observed in vms), TYPES.get(name, 'kvm-2'),
        updated_at=now, cores=None if name in TYPES else 2) for name, vms in HOSTS.items()],
        version=1203, generated_at=now)
    rows = [(host, *vm) for host, vms in HOSTS.items() for vm in vms]
    judged = assessment.Assessor(state, models(), assessment.Settings(maximum_age=900.0))
    return views.View(
        4, judged, judged,
        {identity(vm): views.VM(identity(vm), vm, project, host)
         for host, vm, project, *_rest in rows},
        np.array([np.nan if row[-1] is None else row[-1] for row in rows]), 0.08, now,
        own_limits={identity('shop-db'): (own_limits.OwnLimit('CPU quota', 30.0, '%', 0.12),)})


def decision(view):
    """Return the decision on the VM ``ci-runner``, as nova-scheduler would have recorded it."""
    state = view.assessor.cluster.moved({identity('ci-runner'): None})
    without = dataclasses.replace(view, assessor=assessment.Assessor(
        state, view.assessor.models, view.assessor.settings))
    made = explanation.of_now(view.assessor, identity('ci-runner'), 1795339800.0)
    for place, host in enumerate(made['hosts']):
        host.update(mode='enforce', weight=round(1 / (2 + place), 3))
    made['newcomer']['source'] = 'lab|m1.small|debian-13'
    return json.loads(json.dumps({
        **made, 'id': str(uuid.UUID(int=7)), 'request': REQUEST, 'operation': 'create',
        'snapshot': [view.epoch, without.assessor.cluster.version], 'outcome': 'refused'}))

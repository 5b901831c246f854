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

"""SYNTHETIC truth and results: invented, so that the arithmetic can be checked by hand."""

import numpy as np

from tracon_lab.simulator import truth

PROGRAMS = ('calm', 'loud', 'touchy')


def small_truth():
    """Return the pairs of three invented programs; ``calm`` does no I/O."""
    return truth.Truth(
        'synthetic', PROGRAMS,
        np.array([[1.0, 1.4, 1.1], [1.1, 3.0, 1.3], [1.2, 4.0, 1.6]]),
        np.array([[np.nan, np.nan, np.nan], [0.9, 0.3, 0.8], [0.8, 0.2, 0.6]]),
        np.ones((3, 3)),
        {'calm': np.array([[0.0, 0.0, 0.9, 0.0]]),
         'loud': np.array([[800.0, 200.0, 0.2, 0.4], [820.0, 190.0, 0.2, 0.4]]),
         'touchy': np.array([[100.0, 20.0, 0.1, 0.1]])})


def vm(name, program, host, flavor='plain', **more):
    """Return one VM of an arm's result."""
    return {'name': name, 'project': 'project1', 'flavor': flavor, 'program': program,
            'host': host, **more}


def refusal(name, breached, hosts, **worst):
    """Return what the filter reports of one VM."""
    return {'vm': name, 'outcome': 'refused', 'hosts': hosts, 'breached': breached,
            'expected_from': 'own', 'worst': [{
                'host': 'host01', 'vm': 'newcomer', 'response': 'slowdown',
                'predicted_bound': 2.5, 'limit': 1.5, **worst}]}


def audit(before, during, after, best, **more):
    """Return the result of audits in which ``b``, the neighbour of ``a``, changes."""
    migrates = {'audit': 1, 'vm': 'b', 'source': 'host01', 'destination': 'host02',
                'predicted_gain': 0.75, 'predicted': {'a': [3.5, 1.0]},
                'measured': {'a': [4.0, 1.0], 'b': [1.3, 1.1]}}
    return {'ended': ['z'], 'changed': {'vm': 'b', 'host': 'host01', 'neighbour': 'a',
                                        'from': 'calm', 'to': 'loud'},
            'audits': [{'migrations': 1, 'message': '', 'efficacy': {}},
                       {'migrations': 0, 'message': '', 'efficacy': {}}],
            'quiet': True, 'moves': [migrates], 'before': before, 'during': during,
            'after': after, 'oracle': best, 'oracle_migrations': 1, 'left': [], 'healed': True,
            **more}

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

"""A VM changes its behaviour, and Watcher is asked what should move."""

from __future__ import annotations

import tempfile
from typing import Any, Mapping

import numpy as np

from tracon_watcher.demo import arms
from tracon_watcher.demo import nova_box
from tracon_watcher.demo import outcome
from tracon_watcher.demo import telemetry as telemetries
from tracon_watcher.demo import watcher_box
from tracon_watcher.demo import workload as workloads
from tracon_watcher import errors
from tracon_watcher.simulator import truth as truths

MAX_MIGRATIONS = 3
_LIMIT_SECONDS = 600.0


class AuditFailed(errors.TraconError):
    """Watcher's audit or its action plan did not succeed."""


def run(box: nova_box.NovaBox, telemetry: telemetries.Telemetry, truth: truths.Truth,
        seed: int) -> dict[str, Any]:
    """Let a light VM turn heavy, run an audit, and let Watcher carry out what it recommends.

    :returns: JSON; empty when no VM shares a host
    :raises AuditFailed: when the audit or a migration fails
    """
    before = _state(telemetry, truth)
    changed = _change(telemetry, truth, before, seed)
    if changed is None:
        return {}
    after_change = _state(telemetry, truth)
    telemetry.write()
    with box.door() as door, tempfile.TemporaryDirectory(prefix='tracon-watcher-') as directory:
        with watcher_box.WatcherBox(door.url, directory,
                                    box.snapshot_file) as watcher:
            audit = watcher.audit({'max_migrations': MAX_MIGRATIONS}, execute=True,
                                  timeout=_LIMIT_SECONDS)
    if audit.state != 'SUCCEEDED' or audit.plan_state != 'SUCCEEDED':
        raise AuditFailed(f"Watcher's audit is {audit.state}, its action plan {audit.plan_state}: "
                          + '; '.join(audit.log[-3:]))
    moves = [_moved(telemetry, action.parameters) for action in audit.actions
             if action.kind == 'migrate']
    hosts = box.hosts_of()
    for vm in telemetry.running.values():
        if hosts[vm.uuid] != vm.host:
            raise AuditFailed(f'{vm.request.name} should be on {vm.host} after the action plan, '
                              f'and Nova shows it on {hosts[vm.uuid]}')
    return {'changed': changed, 'moves': moves, 'efficacy': dict(audit.efficacy),
            'log': list(audit.log), 'before': before, 'after_change': after_change,
            'after': _state(telemetry, truth)}


def _state(telemetry: telemetries.Telemetry, truth: truths.Truth) -> list[dict[str, Any]]:
    return outcome.judged([{'name': vm.request.name, 'flavor': vm.request.flavor,
                            'program': vm.program, 'host': vm.host}
                           for vm in telemetry.running.values()], truth)


def _change(telemetry: telemetries.Telemetry, truth: truths.Truth,
            state: list[dict[str, Any]], seed: int) -> dict[str, Any] | None:
    """Draw a VM that runs a light program beside another VM, and have it run the heaviest.

    Where there is such a one, it has no limit itself, and its neighbour has one.
    """
    rng = np.random.default_rng([seed, 3])
    ranked = truth.lightest_first
    light = set(ranked[:len(ranked) // 2])
    paired = {vm['name']: vm for vm in state if vm['neighbour'] is not None}
    candidates = [vm for vm in paired.values() if vm['program'] in light] or list(paired.values())
    candidates = [vm for vm in candidates if paired[vm['neighbour']]['limited']] or candidates
    candidates = [vm for vm in candidates if not vm['limited']] or candidates
    if not candidates:
        return None
    chosen = candidates[int(rng.integers(len(candidates)))]
    vm = next(one for one in telemetry.running.values() if one.request.name == chosen['name'])
    vm.program = ranked[-1]
    vm.profile = workloads.one_profile(rng, truth, vm.program)
    return {'vm': chosen['name'], 'host': chosen['host'], 'neighbour': chosen['neighbour'],
            'from': chosen['program'], 'to': vm.program}


def _moved(telemetry: telemetries.Telemetry, action: Mapping[str, Any]) -> dict[str, Any]:
    """Take a migration over into the telemetry, and tell what was predicted of it."""
    vm = telemetry.running[action['resource_id']]
    source, destination = vm.host, str(action['destination_node'])
    predicted = arms.predictions(telemetry)
    harm = _harm(telemetry)
    vm.host = destination
    gain = harm - _harm(telemetry)
    after = arms.predictions(telemetry)
    affected = sorted(one.request.name for one in telemetry.running.values()
                      if one.host in (source, destination))
    return {'vm': vm.request.name, 'source': source, 'destination': destination,
            'predicted_gain': gain,
            'predicted': {name: [predicted[name]['predicted_slowdown'],
                                 after[name]['predicted_slowdown']]
                          for name in affected if name in predicted and name in after}}


def _harm(telemetry: telemetries.Telemetry) -> float:
    """Sum of log slowdowns and −log IOPS ratios of all VMs of which they are known."""
    return float(sum(np.nansum(exponents) for exponents in telemetry.assessor().exponents()))

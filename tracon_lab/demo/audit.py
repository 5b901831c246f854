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

"""Some VMs end, one changes its behaviour, and Watcher audits until it proposes nothing more."""

from __future__ import annotations

import tempfile
from typing import Any, Callable, Mapping

import numpy as np

from tracon_lab.demo import arms
from tracon_lab.demo import nova_box
from tracon_lab.demo import oracle
from tracon_lab.demo import outcome
from tracon_lab.demo import telemetry as telemetries
from tracon_lab.demo import watcher_box
from tracon_lab.demo import workload as workloads
from tracon_lab.simulator import truth as truths
from tracon_watcher import errors

#: Each audit may start as many migrations as the strategy's default says; this bounds their
#: number, should two audits ever want the opposite of each other.
MOST_AUDITS = 10
#: Parameters of each audit. The audits of one hour are run within a minute.
PARAMETERS: Mapping[str, Any] = {'cooldown_seconds': 0}
_LIMIT_SECONDS = 600.0
State = list[dict[str, Any]]


class AuditFailed(errors.TraconError):
    """Watcher's audit or its action plan did not succeed."""


def run(box: nova_box.NovaBox, telemetry: telemetries.Telemetry, truth: truths.Truth,
        seed: int, departing: float, progress: Callable[[int], None]) -> dict[str, Any]:
    """Let some VMs end and one turn heavy; run audits, and let Watcher carry their plans out.

    :param departing: share of the VMs that end
    :param progress: called with the number of audits done
    :returns: JSON; empty when no VM shares a host. ``before``, ``during`` (after the change),
        ``after`` (all audits) and ``oracle`` are judged VMs
    :raises AuditFailed: when an audit or a migration fails
    """
    ended = _departures(telemetry, seed, departing)
    box.delete([vm.uuid for vm in ended])
    for vm in ended:
        del telemetry.running[vm.uuid]
    before = _state(telemetry, truth)
    changed = _change(telemetry, truth, before, seed)
    if changed is None:
        return {}
    during = _state(telemetry, truth)
    best, migrations = oracle.best(during, telemetry.hosts, truth)
    moves: list[dict[str, Any]] = []
    audits: list[dict[str, Any]] = []
    with box.door() as door, tempfile.TemporaryDirectory(prefix='tracon-watcher-') as directory:
        with watcher_box.WatcherBox(door.url, directory, box.snapshot_file) as watcher:
            while len(audits) < MOST_AUDITS and (not audits or audits[-1]['migrations']):
                telemetry.write()
                done = _audit(watcher)
                new = [_moved(telemetry, truth, action.parameters, len(audits) + 1)
                       for action in done.actions if action.kind == 'migrate']
                audits.append({'migrations': len(new), 'message': done.message,
                               'efficacy': dict(done.efficacy)})
                moves += new
                progress(len(audits))
    _check(box, telemetry)
    after = _state(telemetry, truth)
    return {'ended': sorted(vm.request.name for vm in ended), 'changed': changed,
            'audits': audits, 'quiet': not audits[-1]['migrations'], 'moves': moves,
            'before': before, 'during': during, 'after': after, 'oracle': best,
            'oracle_migrations': migrations, 'left': _left(telemetry, after, best),
            'healed': _healed(changed['neighbour'], before, after)}


def _audit(watcher: watcher_box.WatcherBox) -> watcher_box.Outcome:
    done = watcher.audit(PARAMETERS, execute=True, timeout=_LIMIT_SECONDS)
    if done.state != 'SUCCEEDED' or done.plan_state != 'SUCCEEDED':
        raise AuditFailed(f"Watcher's audit is {done.state}, its action plan {done.plan_state}: "
                          + '; '.join(done.log[-3:]))
    return done


def _check(box: nova_box.NovaBox, telemetry: telemetries.Telemetry) -> None:
    hosts = box.hosts_of()
    for vm in telemetry.running.values():
        if hosts[vm.uuid] != vm.host:
            raise AuditFailed(f'{vm.request.name} should be on {vm.host} after the action plan, '
                              f'and Nova shows it on {hosts[vm.uuid]}')


def _state(telemetry: telemetries.Telemetry, truth: truths.Truth) -> State:
    return outcome.judged([{'name': vm.request.name, 'flavor': vm.request.flavor,
                            'program': vm.program, 'host': vm.host}
                           for vm in telemetry.running.values()], truth)


def _departures(telemetry: telemetries.Telemetry, seed: int,
                share: float) -> list[telemetries.Running]:
    """Draw the VMs that end."""
    running = sorted(telemetry.running.values(), key=lambda vm: vm.request.name)
    chosen = np.random.default_rng([seed, 4]).permutation(len(running))
    return [running[index] for index in chosen[:round(share * len(running))].tolist()]


def _change(telemetry: telemetries.Telemetry, truth: truths.Truth, state: State,
            seed: int) -> dict[str, Any] | None:
    """Draw a VM that shares a host, and have it run the program that harms neighbours most.

    It is drawn among those whose neighbour this puts in breach of its limit, by measured truth;
    where there is none, it is the one whose neighbour gets slowest by it. VMs with a limit of
    their own are drawn only when there are no others.
    """
    rng = np.random.default_rng([seed, 3])
    heaviest = truth.lightest_first[-1]
    paired = {vm['name']: vm for vm in state if vm['neighbour'] is not None}
    candidates = []
    for vm in paired.values():
        victim = paired[vm['neighbour']]
        limits = workloads.FLAVORS[victim['flavor']].limits
        slowdown, ratio = truth.beside(victim['program'], heaviest)
        breach = slowdown > limits.max_slowdown or ratio < limits.min_iops_ratio
        if vm['program'] != heaviest:
            candidates.append((breach and not victim['in_breach'], not vm['limited'],
                               slowdown / victim['slowdown'], vm))
    if not candidates:
        return None
    of_kind = [one for one in candidates if one[:2] == max(each[:2] for each in candidates)]
    if not of_kind[0][0]:
        of_kind = [max(candidates, key=lambda one: one[2])]
    chosen = of_kind[int(rng.integers(len(of_kind)))][3]
    running = next(one for one in telemetry.running.values()
                   if one.request.name == chosen['name'])
    running.program = heaviest
    running.profile = workloads.one_profile(rng, truth, heaviest)
    return {'vm': chosen['name'], 'host': chosen['host'], 'neighbour': chosen['neighbour'],
            'from': chosen['program'], 'to': heaviest}


def _moved(telemetry: telemetries.Telemetry, truth: truths.Truth, action: Mapping[str, Any],
           audit: int) -> dict[str, Any]:
    """Take a migration over into the telemetry; return its predicted and measured effect."""
    vm = telemetry.running[action['resource_id']]
    source, destination = vm.host, str(action['destination_node'])
    states = []
    for host in (source, destination):
        vm.host = host
        states.append((_harm(telemetry), arms.predictions(telemetry),
                       {one['name']: one['slowdown'] for one in _state(telemetry, truth)}))
    (harm, predicted, measured), (harm_after, predicted_after, measured_after) = states
    affected = sorted(one.request.name for one in telemetry.running.values()
                      if one.host in (source, destination))
    return {'audit': audit, 'vm': vm.request.name, 'source': source, 'destination': destination,
            'predicted_gain': harm - harm_after,
            'predicted': {name: [predicted[name]['predicted_slowdown'],
                                 predicted_after[name]['predicted_slowdown']]
                          for name in affected if name in predicted and name in predicted_after},
            'measured': {name: [measured[name], measured_after[name]] for name in affected}}


def _left(telemetry: telemetries.Telemetry, after: State, best: State) -> list[dict[str, Any]]:
    """Return the VMs in breach after all audits, with what is predicted of each."""
    assessor = telemetry.assessor()
    seen = dict(zip(assessor.cluster.uuids, assessor.breaches().tolist()))
    uuids = {vm.request.name: vm.uuid for vm in telemetry.running.values()}
    predicted = arms.predictions(telemetry)
    avoided = {vm['name'] for vm in best if not vm['in_breach']}
    return [{'vm': vm['name'], 'neighbour': vm['neighbour'], 'flavor': vm['flavor'],
             'slowdown': vm['slowdown'], 'iops_ratio': vm['iops_ratio'],
             'predicted_slowdown': predicted.get(vm['name'], {}).get('predicted_slowdown'),
             'predicted_iops_ratio': predicted.get(vm['name'], {}).get('predicted_iops_ratio'),
             'seen': bool(seen[uuids[vm['name']]]), 'oracle_avoids': vm['name'] in avoided}
            for vm in after if vm['in_breach']]


def _healed(name: str, before: State, after: State) -> bool:
    """Return whether the neighbour is at most as slow as before the change, and not in breach.

    A VM that was in breach before may still be.
    """
    old, new = (next(vm for vm in state if vm['name'] == name) for state in (before, after))
    return bool(new['slowdown'] <= 1.05 * old['slowdown']
                and (old['in_breach'] or not new['in_breach']))


def _harm(telemetry: telemetries.Telemetry) -> float:
    """Sum of log slowdowns and −log IOPS ratios of all VMs of which they are known."""
    return float(
        sum(np.nansum(log_responses) for log_responses in telemetry.assessor().log_responses()))

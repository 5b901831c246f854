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

"""The arms: the same requests, placed by differently configured schedulers."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, TYPE_CHECKING

import numpy as np

from tracon_lab.demo import telemetry as telemetries
from tracon_lab.demo import workload as workloads
from tracon_watcher.placement import current_interference

if TYPE_CHECKING:
    # Reports name the arms too, and need no Nova for that.
    from tracon_lab.demo import nova_box

Progress = Callable[[int], None]


@dataclasses.dataclass(frozen=True)
class Arm:
    """How nova-scheduler is configured.

    :param mode: of this extension; None: Nova as it comes
    :param oracle: whether the profile of each newcomer is known beforehand
    """

    name: str
    mode: str | None = None
    oracle: bool = False


STOCK = 'stock'
ARMS = {arm.name: arm for arm in (
    Arm(STOCK), Arm('weigh, history', 'weigh'), Arm('weigh, oracle', 'weigh', True),
    Arm('enforce, history', 'enforce'), Arm('enforce, oracle', 'enforce', True))}


def run(box: nova_box.NovaBox, arm: Arm, workload: workloads.Workload,
        telemetry: telemetries.Telemetry, on_all_refused: str, seed: int,
        progress: Progress) -> dict[str, Any]:
    """Have Nova place all requests, and tell who runs where and what was refused.

    :param seed: draws which of equally good hosts a request gets, the same in every arm

    :returns: JSON: ``vms``, one a request in its order, and ``refusals``
    """
    for flavor in workloads.FLAVORS.values():
        box.flavor(flavor.name, flavor.extra_specs)
    settings: dict[str, Any] = {} if arm.mode is None else {'on_all_refused': on_all_refused}
    box.schedule(arm.mode, **settings)
    vms, names = [], {}
    for number, request in enumerate(workload.requests):
        progress(number)
        if arm.mode is not None:
            box.snapshot_written(telemetry.write(request if arm.oracle else None))
        server = box.boot(request.name, request.flavor, request.project, seed)
        names[server.uuid] = request.name
        if server.host is not None:
            telemetry.running[server.uuid] = telemetries.Running(
                request, server.uuid, server.host, request.profile, request.program)
        vms.append({'name': request.name, 'project': request.project, 'flavor': request.flavor,
                    'program': request.program, 'host': server.host})
    predicted = predictions(telemetry)
    for vm in vms:
        vm.update(predicted.get(str(vm['name']), {}))
    return {'vms': vms, 'refusals': [_refusal(report, names) for report in box.reports],
            'warnings': list(box.warnings)}


def predictions(telemetry: telemetries.Telemetry) -> dict[str, dict[str, float]]:
    """Return, for each running VM, what is predicted that it suffers where it is.

    Slowdown with its one-sided 80 % confidence bounds on either side, and IOPS ratio; a VM of
    which nothing is known has no entry.
    """
    assessor = telemetry.assessor()
    now = current_interference.current_interference(assessor)
    slow = {f'predicted_{name}': np.exp(log_response[0]) for name, log_response in (
        ('slowdown', now.log_response), ('low', now.lower), ('high', now.upper))}
    result = {}
    for vm in telemetry.running.values():
        row = assessor.cluster.resident_index[vm.uuid]
        if not now.known[row]:
            continue
        result[vm.request.name] = {name: float(values[row]) for name, values in slow.items()}
        if not np.isnan(now.log_response[1, row]):
            ratio = float(np.exp(-now.log_response[1, row]))
            result[vm.request.name]['predicted_iops_ratio'] = ratio
    return result


def _refusal(report: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Put names instead of uuids into what the filter has logged."""
    return {'vm': names.get(report['instance'], report['instance']),
            'outcome': report['outcome'], 'hosts': report['hosts'],
            'breached': report['breached'], 'expected_from': report['expected_from'],
            'worst': [{**one, 'vm': names.get(one['vm'], one['vm'])} for one in report['worst']]}

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

"""What the engine knows at one moment; never changed, replaced as a whole."""

from __future__ import annotations

import dataclasses
from typing import Mapping

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.engine import own_limits as limits_module
from tracon_watcher.engine import probes
from tracon_watcher.placement import assessment


@dataclasses.dataclass(frozen=True)
class VM:
    """What an operator calls a VM by, and whose it is.

    :param host: of its compute service
    """

    uuid: str
    name: str
    project: str
    host: str


@dataclasses.dataclass(frozen=True)
class View:
    """The state of a cloud, ready to be judged and shown.

    :param epoch: of the engine that leads; a snapshot is told by epoch and version
    :param assessor: the cluster (``assessor.cluster``) and how it is judged, as published
    :param moment: the same with what VMs demand at this moment, for who disturbs whom now;
        ``assessor`` itself where that is nothing else
    :param vms: by uuid; all residents of the cluster
    :param observed: (n,) slowdown that the counters show of each resident now, in the order of
        ``cluster.uuids``; NaN where unknown
    :param observed_error: mean relative error of ``observed``, as its calibration found it
    :param updated_at: seconds since the epoch of the latest telemetry
    :param own_limits: by uuid, the limits of VMs that their owners stated, and how often each was
        reached; VMs without any are not there
    :param held_back: uuids of VMs that their own limits hold back now, or may
    :param stretches: (n, 2) by how much the CPU time and the requests of each stretch now; NaN
        where unknown; None where nothing is known
    :param felt: by host and phase, what the sensors of probe VMs have felt; hosts whose sensor is
        silent are not there
    """

    epoch: int
    assessor: assessment.Assessor
    moment: assessment.Assessor
    vms: Mapping[str, VM]
    observed: FloatArray
    observed_error: float
    updated_at: float
    own_limits: Mapping[str, tuple[limits_module.OwnLimit, ...]] = dataclasses.field(
        default_factory=dict)
    held_back: frozenset[str] = frozenset()
    stretches: FloatArray | None = None
    felt: Mapping[str, Mapping[str, probes.Felt]] = dataclasses.field(default_factory=dict)

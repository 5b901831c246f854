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

"""Tuning of a phase for a type of host (Mukherjee, Figures 4.2 and 4.3).

First intensity goes down, beside neighbours without trouble, until the probe harms none of them.
Then duration goes down, beside neighbours in trouble, as far as the probe still detects it.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Callable, Protocol, Sequence

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.probe import phases


SCHEMA = 'tracon-probe-tuning/1'


class TuningFailed(errors.TraconError):
    """No setting does what a probe has to do."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """What was seen with one setting.

    :param harmed: whether the neighbours were slower than without the probe
    :param detected: whether the probe felt contention
    :param evidence: the numbers behind both, for people
    """

    harmed: bool
    detected: bool
    evidence: str = ''


def load(path: str | os.PathLike[str]) -> tuple[str, phases.Setting]:
    """Read the setting that a tuning has found, and the name of its phase.

    :raises tracon_watcher.errors.InvalidDocument: naming file, field and value
    """
    fields = document.read(path, 'tracon probe tune')
    fields.string('schema', (SCHEMA,))
    setting = phases.Setting(fields.number('rate'), fields.number('seconds'),
                             int(fields.number('amount')))
    return fields.string('phase', tuple(phases.PHASES)), setting


@dataclasses.dataclass(frozen=True)
class Step:
    """One line of the trace.

    :param troubled: whether the neighbours were those in trouble
    :param kept: whether the setting passed
    """

    setting: phases.Setting
    troubled: bool
    trial: Trial
    kept: bool


class Scene(Protocol):
    """Neighbours without trouble and in trouble, and a probe beside them."""

    def trial(self, setting: phases.Setting, troubled: bool) -> Trial:
        """Run the probe beside one kind of neighbours."""
        ...


def tune(start: phases.Setting, name: str, values: Sequence[Any], durations: Sequence[float],
         scene: Scene, report: Callable[[Step], None] = lambda step: None) -> phases.Setting:
    """Return the setting that harms no neighbour and detects their trouble in the least time.

    :param start: as long as the neighbours' work
    :param name: of the intensity: rate (c of the connection phase) or amount (n of the memory
        phase)
    :param values: of the intensity, falling
    :param durations: seconds, falling
    :raises TuningFailed: when no intensity leaves neighbours alone, or none of those detects
    """
    for value in values:
        candidate = dataclasses.replace(start, **{name: value})
        trial = scene.trial(candidate, troubled=False)
        report(Step(candidate, False, trial, not trial.harmed))
        if not trial.harmed:
            break
    else:
        raise TuningFailed(f'the probe harms its neighbours down to a {name} of {values[-1]:g}: '
                           f'begin lower')
    found = None
    for seconds in (start.seconds, *durations):
        shorter = dataclasses.replace(candidate, seconds=seconds)
        trial = scene.trial(shorter, troubled=True)
        report(Step(shorter, True, trial, trial.detected))
        if not trial.detected:
            break
        found = shorter
    if found is None:
        raise TuningFailed(f'a probe with a {name} of {getattr(candidate, name):g} does not feel '
                           f'the trouble of its neighbours: make it worse, or measure the '
                           f'baseline again')
    return found

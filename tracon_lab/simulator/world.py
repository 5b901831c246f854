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

"""All that a simulation rests on: classes of tasks, what is true of them, what is predicted."""

from __future__ import annotations

import dataclasses
from typing import Iterable, Sequence

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.models import fit
from tracon_lab.models import per_application
from tracon_lab.scheduling import configurations as configuration
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import predicted
from tracon_lab.simulator import composition
from tracon_lab.simulator import published
from tracon_lab.simulator import truth as truths
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors
from tracon_watcher import tie_breaking

#: By what schedulers decide: TRACON's own models of each application; the law of queueing, as in
#: production; or the truth itself, which tells what errors of the others cost.
MODELS = ('wmm', 'lm', 'nlm', 'law', 'truth')
#: What a task is: the work of one measured window, or the same number of units of each program.
WINDOW, UNIT = 'window', 'unit'
WORK = (WINDOW, UNIT)


@dataclasses.dataclass(frozen=True)
class World:
    """Classes in the order of their I/O intensity, the least intensive first.

    :param host_types: t names
    :param factor: by which measured times were multiplied
    :param profiles: (t, c, 4) characteristics alone
    :param storage_waits: (t, c) part of its time alone that each waits for storage, NaN where
        unknown
    :param cores: t numbers, of a host of each type
    """

    host_types: tuple[str, ...]
    truth: performances.Performance
    predicted: performances.Performance
    model: str
    factor: float
    profiles: FloatArray
    storage_waits: FloatArray
    cores: tuple[int, ...]

    @property
    def configurations(self) -> configuration.Configurations:
        """What may run together."""
        return self.truth.configurations

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names."""
        return self.configurations.classes

    def capacity(self, mix: FloatArray, hosts: IntArray) -> float:
        """Return how many tasks of a mix, (c,), all slots complete a second without interference.

        :param hosts: (t,) of each type
        """
        slots = np.array(self.configurations.slots) * hosts
        return float((slots / (self.truth.solo_seconds @ mix)).sum())


def build(datasets: Iterable[dataset.Dataset], host_types: Sequence[str], slots: Sequence[int],
          minutes: float = 3.0, model: str = 'nlm', work: str = WINDOW,
          plan: str = '') -> World:
    """Gather truth and predictions of one or several host types.

    :param slots: of each host type
    :param minutes: mean runtime of the classes alone on the first host type; one factor for all
        brings the measured seconds there
    :param model: one of :data:`MODELS`
    :param work: one of :data:`WORK`
    :param plan: of the measurements whose programs are the classes
    :raises tracon_watcher.errors.NotEnoughData: when not every pair was measured
    :raises tracon_watcher.errors.InvalidOption: for host types without programs in common
    """
    datasets = list(datasets)
    _check(datasets, host_types, minutes, model, work)
    found = _common([truths.of(datasets, name, plan) for name in host_types])
    rank = tie_breaking.argsort(found[0].typical[:, :2].sum(axis=1))
    found = [_reordered(one, rank.tolist()) for one in found]
    factor, seconds = _solo_seconds(found, minutes, work)
    space = configuration.Configurations(found[0].programs, slots)
    profiles = np.stack([one.typical for one in found])
    truth = composition.true_performance(space, found, seconds).rounded()
    waits = np.array([[one.storage_waits.get(name, np.nan) for name in one.programs]
                      for one in found])
    cores = tuple(one.cores for one in found)
    if model == 'truth':
        guess = truth
    elif model == 'law':
        guess = predicted.by_assessor(space, cores, profiles, waits, seconds)
    else:
        guess = predicted.by_application(
            space, profiles, seconds,
            _of_applications(datasets, host_types, found, model.upper()))
    lost = np.isnan(guess.slowdown) & (space.residents > 0)
    if lost.any():
        task = int(np.flatnonzero(lost.any(axis=0))[0])
        raise errors.NotEnoughData(f'a prediction of {space.classes[task]} by model {model}', 0, 1)
    return World(tuple(host_types), truth, guess.rounded(), model, factor, profiles, waits, cores)


def build_published(slots: Sequence[int], minutes: float = 3.0,
                    calc_ranks: int = published.CALC_RANKS,
                    name: str = published.NAME) -> World:
    """Build the world of the paper's Table 1, or of its host; schedulers decide by the truth.

    :param slots: of a host, one number
    :param minutes: runtime of each application alone
    :param calc_ranks: see :func:`tracon_lab.simulator.published.truth`
    :param name: one of :data:`tracon_lab.simulator.published.NAMES`
    """
    _check_minutes(minutes)
    found = published.spindle() if name == published.SPINDLE else published.truth(calc_ranks)
    factor, seconds = _solo_seconds([found], minutes, WINDOW)
    space = configuration.Configurations(found.programs, slots)
    truth = composition.true_performance(space, [found], seconds).rounded()
    return World((name,), truth, truth, 'truth', factor, found.typical[None],
                 np.full((1, len(found.programs)), np.nan), (found.cores,))


def _check_minutes(minutes: float) -> None:
    if not minutes > 0 or not np.isfinite(minutes):
        raise errors.InvalidOption('minutes', minutes, 'a time above 0')


def _check(datasets: Sequence[dataset.Dataset], host_types: Sequence[str], minutes: float,
           model: str, work: str) -> None:
    _check_minutes(minutes)
    for name, value, allowed in (('model', model, MODELS), ('work', work, WORK)):
        if value not in allowed:
            raise errors.InvalidOption(name, value, f'expected one of {", ".join(allowed)}')
    known = truths.host_types(datasets)
    for host_type in host_types:
        if host_type not in known:
            raise errors.InvalidOption('host_type', host_type, 'pairs were measured of '
                                       + (', '.join(known) or 'none'))


def _solo_seconds(found: Sequence[truths.Truth], minutes: float,
                  work: str) -> tuple[float, FloatArray]:
    """Return the factor, and (t, c) seconds alone.

    The same work takes another time on another host type: as much more as a unit of it takes
    there.
    """
    first = found[0]
    for one in found:
        for name in one.programs:
            if name not in one.unit_seconds or name not in one.window_seconds:
                raise errors.NotEnoughData(f'how long {name} takes alone on {one.host_type}', 0, 1)
    units = np.array([[one.unit_seconds[name] for name in one.programs] for one in found])
    seconds = units if work == UNIT else units / units[0] * np.array(
        [first.window_seconds[name] for name in first.programs])
    factor = minutes * 60 / float(seconds[0].mean())
    return factor, seconds * factor


def _common(found: list[truths.Truth]) -> list[truths.Truth]:
    shared = [name for name in found[0].programs
              if all(name in other.programs for other in found)]
    if not shared:
        raise errors.InvalidOption(
            'host_type', ', '.join(one.host_type for one in found),
            'their measurements have no programs in common; name a plan that both have')
    return [_reordered(one, [one.programs.index(name) for name in shared]) for one in found]


def _reordered(truth: truths.Truth, rows: Sequence[int]) -> truths.Truth:
    square = np.ix_(rows, rows)
    return dataclasses.replace(
        truth, programs=tuple(truth.programs[row] for row in rows),
        slowdown=truth.slowdown[square], iops_ratio=truth.iops_ratio[square],
        measurements=truth.measurements[square])


def _of_applications(datasets: Sequence[dataset.Dataset], host_types: Sequence[str],
                     found: Sequence[truths.Truth], kind_of_model: str,
                     ) -> dict[tuple[int, int, str], predicted.ApplicationModel]:
    models: dict[tuple[int, int, str], predicted.ApplicationModel] = {}
    for kind, (name, truth) in enumerate(zip(host_types, found)):
        own = [one for one in datasets if one.host_type == name]
        for task, program in enumerate(truth.programs):
            for response, model in fit.models_of(own, program, kind_of_model).items():
                models[kind, task, response] = model
            if (kind, task, 'slowdown') not in models:
                raise errors.NotEnoughData(f'{kind_of_model} of {program} on {name}', 0,
                                           per_application.LEAST_POINTS)
    return models

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

"""TRACON's tables and figures from our measurements, as rows; published values beside ours."""

import typing

import numpy as np

from tracon_watcher.characteristics import NAMES
from tracon_watcher.lab import application_plans
from tracon_watcher.lab import applications
from tracon_watcher.lab import host_types
from tracon_watcher.lab import programs
from tracon_watcher.lab import summary
from tracon_watcher.models import dataset
from tracon_watcher.models import fit
from tracon_watcher.models import optimal_design
from tracon_watcher.models import per_application
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation

Rows = list[tuple[typing.Any, ...]]

TABLE1 = ('host_type', 'target', 'beside', 'published', 'measured', 'standard_deviation',
          'points')
#: Slowdowns of TRACON's Table 1, in the order of its columns; SeqRead is our `seqread`.
PUBLISHED_TABLE1 = {'calc': (1.96, 1.26, 1.77, 2.52), 'seqread': (1.03, 10.23, 1.78, 16.11)}

TABLE3 = ('host_type', 'application', 'published_rank', 'rank', 'iops', 'reads_per_second',
          'writes_per_second', 'guest_cpu', 'host_cpu', 'seconds', 'spread', 'windows')

EXTREMES = ('host_type', 'response', 'application', 'model', 'predicted_best', 'measured_best',
            'measured_mean', 'measured_worst', 'predicted_partner', 'measured_with_it',
            'best_partner')
PAIRWISE, NLM = 'pairwise', 'NLM'

DESIGN = ('host_type', 'response', 'backgrounds', 'chosen', 'held_out_error', 'pair_error',
          'noise_floor')
#: How many backgrounds a design has; None is all of them.
DESIGNS = (10, 15, 20, 25, None)
_DRAWN = 10             # random subsets of the same size, to see what choosing is worth


def table1(datasets: typing.Iterable[dataset.Dataset]) -> Rows:
    """A computation and a sequential reader beside the extremes of the generator."""
    rows: Rows = []
    by_host = {}
    for data in datasets:
        by_host.setdefault(data.host_type, []).append(data)
    for host_type, parts in by_host.items():
        for target, published in PUBLISHED_TABLE1.items():
            for (beside, shares), paper in zip(application_plans.EXTREMES.items(), published):
                name = application_plans.setting(host_types.named(host_type), shares)
                found = np.concatenate([part.numbers['slowdown'][
                    (part.text['target'] == target) & (part.text['background'] == name)
                    & (part.text['kind'] == 'repeat')] for part in parts])
                if len(found):
                    rows.append((host_type, target, beside, paper, float(found.mean()),
                                 float(found.std(ddof=1)) if len(found) > 1 else float('nan'),
                                 len(found)))
    return rows


def table3(data: dataset.Dataset) -> Rows:
    """The applications alone: what they ask for, and how well a run repeats."""
    alone = data.text['kind'] == 'solo'
    found = []
    for name, application in applications.CATALOGUE.items():
        own = alone & (data.text['target'] == name)
        if own.any():
            def mean(column: str, own: np.ndarray = own) -> float:
                return float(data.numbers[column][own].mean())
            found.append((name, application.rank, mean('iops'), *(
                mean('target_observed_' + one) for one in NAMES),
                mean('time_per_unit'), summary.solo_spread(data, name), int(own.sum())))
    order = sorted(range(len(found)), key=lambda n: found[n][2])
    return [(data.host_type, *found[n][:2], order.index(n) + 1, *found[n][2:])
            for n in range(len(found))]


def extremes(points: measured.Points, response: str) -> Rows:
    """Each application's best partner: predicted, and as it was measured (Fig. 5 and 6).

    For the slowdown the best is the least, for the IOPS ratio the most. No model was fitted to the
    pairs that are predicted.
    """
    pairs = points.defined(response, ('pair',))
    fitted = points.defined(response, measured.FITTED)
    if not len(pairs) or len(fitted) < measured.LEAST_POINTS:
        return []
    whole = fit.regressor(fitted, response, measured.capacity(points))
    predicted = {PAIRWISE: measured.from_exponent(
        whole.predict(measured.design(pairs)), response), NLM: np.full(len(pairs), np.nan)}
    for name in np.unique(pairs.target):
        own = per_application.of_application(points, response, str(name))
        if per_application.enough(own):
            chosen = pairs.target == name
            predicted[NLM][chosen] = per_application.fit(own, response, NLM).predict(
                pairs.target_alone[chosen], pairs.background_alone[chosen])
    rows: Rows = []
    for name in np.unique(pairs.target):
        chosen = pairs.target == name
        actual, partners = pairs.response(response)[chosen], pairs.background[chosen]
        sign = 1 if response == 'slowdown' else -1
        for model, values in predicted.items():
            own_values = values[chosen]
            if not np.isfinite(own_values).all():
                continue
            best, true = int(np.argmin(sign * own_values)), int(np.argmin(sign * actual))
            rows.append((points.host_type, response, str(name), model, float(own_values[best]),
                         float(actual[true]), float(actual.mean()),
                         float(actual[np.argmax(sign * actual)]), str(partners[best]),
                         float(actual[best]), str(partners[true])))
    return rows


def design(points: measured.Points, response: str, seed: int = 1) -> Rows:
    """How few of the generator's settings suffice: chosen by design, and by chance.

    The held-out error is that of the settings which are not in the subset; for all of them it is
    that of cross-validation by background.
    """
    fitted = points.defined(response, measured.FITTED)
    settings = {name: _shares(name) for name in np.unique(fitted.background)
                if programs.is_generator(name)}
    names = sorted(settings)
    if len(names) < 2 * max(count for count in DESIGNS if count):
        return []
    intensities = np.array([settings[name] for name in names])
    intensities = intensities / intensities.max(axis=0)
    noise = validation.noise(points, response)
    floor = float(np.nanmean(noise)) if np.isfinite(noise).any() else float('nan')
    capacity = measured.capacity(points)
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for count in DESIGNS:
        if count is None:
            rows.append((points.host_type, response, len(names), 'all',
                         *_errors_of(points, fitted, response, capacity, names, names), floor))
            continue
        chosen = [names[n] for n in optimal_design.choose(intensities, count)]
        rows.append((points.host_type, response, count, 'by design',
                     *_errors_of(points, fitted, response, capacity, chosen, names), floor))
        drawn = np.array([_errors_of(points, fitted, response, capacity, list(
            rng.choice(names, count, replace=False)), names) for _ in range(_DRAWN)])
        rows.append((points.host_type, response, count, 'by chance, mean of %d' % _DRAWN,
                     *map(float, drawn.mean(axis=0)), floor))
    return rows


def _shares(name: str) -> tuple[float, ...]:
    match = programs.GENERATOR.match(name)
    assert match
    return tuple(float(group) for group in match.groups())


def _errors_of(points: measured.Points, fitted: measured.Points, response: str,
               capacity: np.ndarray, chosen: typing.Sequence[str],
               names: typing.Sequence[str]) -> tuple[float, float]:
    """Errors of named programs beside settings not chosen, and beside each other."""
    kept = fitted.take(np.isin(fitted.background, chosen) | np.isin(fitted.target, chosen))
    model = fit.regressor(kept, response, capacity)
    if len(chosen) == len(names):
        exponents = validation.by_background(
            fitted, response, fit.factory_like(model))
        rest = np.isfinite(exponents) & (fitted.kind == 'background')
        held = fitted.take(rest)
        exponents = exponents[rest]
    else:
        held = fitted.take(~np.isin(fitted.background, chosen) & (fitted.kind == 'background'))
        exponents = model.predict(measured.design(held))
    pairs = points.defined(response, ('pair',))
    return tuple(validation.Errors.of(
        measured.from_exponent(exponent, response), part.response(response)).mean
        for exponent, part in ((exponents, held), (model.predict(measured.design(pairs)), pairs)))

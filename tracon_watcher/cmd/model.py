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

"""``tracon model``: fit, evaluate and show interference models."""

import argparse
import dataclasses
import importlib.resources
import math
import pathlib
import re
from typing import Any

from cliff import lister
import numpy as np

from tracon_watcher.characteristics import NAMES
from tracon_watcher import errors
from tracon_watcher.prediction import anchored
from tracon_watcher.prediction import store
from tracon_watcher.prediction import weighted_mean


# Names that fit into a table.
_SHORT = ('reads', 'writes', 'guest CPU', 'host CPU')


def packaged_measurements() -> list[str]:
    """Return the files of measurements that come with the package."""
    folder = importlib.resources.files('tracon_watcher.lab') / 'data'
    return sorted(str(entry) for entry in folder.iterdir() if entry.name.endswith('.csv'))


def _read(files: list[str]) -> Any:
    from tracon_watcher.models import dataset
    found = files or packaged_measurements()
    if not found:
        raise errors.InvalidOption('FILE', None, 'no measurements came with the package; name '
                                                 'a CSV file of `tracon lab measure`')
    return dataset.read_all(found)


def _one_thread() -> Any:
    # The matrices are small: threads only wait for each other, all the more on a busy machine.
    import threadpoolctl
    return threadpoolctl.threadpool_limits(1)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('file', nargs='*', metavar='FILE',
                        help='measurements (CSV); by default those that come with the package')


class Fit(lister.Lister):
    """Fit the production models, a slowdown and an IOPS ratio for each host type."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_files(parser)
        parser.add_argument('--output', metavar='DIR', required=True,
                            help='folder for the JSON files; made where it is not there')
        parser.add_argument('--per-application', action='store_true',
                            help='also write TRACON\'s own models (WMM, LM, NLM) of each program')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        datasets = _read(parsed_args.file)
        with _one_thread():
            models = _fitted(datasets, parsed_args.per_application)
        folder = pathlib.Path(parsed_args.output)
        rows = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, model, held_out in models:
                path = folder / (re.sub(r'[^\w.-]+', '_', name) + '.json')
                store.save(model, path)
                rows.append((str(path), _form(model), _shown(held_out['mean'], parsed_args),
                             held_out['points']))
        except OSError as error:
            raise errors.InvalidOption('--output', parsed_args.output, str(error)) from None
        return ('file', 'form', 'mean_error', 'points'), rows


def _fitted(datasets: Any,
            per_application: bool) -> list[tuple[str, store.AnyModel, dict[str, Any]]]:
    from tracon_watcher.models import fit
    models: list[tuple[str, store.AnyModel, dict[str, Any]]] = [
        (f'{model.host_type}-{model.response}', model,
         dict(model.errors['by_target_and_background']))
        for model in fit.production_models(datasets)]
    if per_application:
        models += [
            ('-'.join((model.head.host_type, model.head.application,
                       model.head.training['model'], model.head.response)), model,
             dict(model.head.errors['by_background']))
            for model in fit.application_models(datasets)]
    return models


class Evaluate(lister.Lister):
    """Show how wrong each model is, a row a response, application and model."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_files(parser)
        parser.add_argument('--benchmarks', action='store_true',
                            help='also other learners (forest, boosted trees, Gaussian process); '
                                 'takes several minutes')
        parser.add_argument('--plot', metavar='FILE', help='also draw bars, as .png or .html')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher.models import evaluation
        from tracon_watcher.models import points as measured
        if parsed_args.plot and pathlib.Path(parsed_args.plot).suffix not in ('.png', '.html'):
            raise errors.InvalidOption('--plot', parsed_args.plot,
                                       'expected a file name that ends in .png or .html')
        others = None
        if parsed_args.benchmarks:
            from tracon_watcher.models import benchmarks
            others = benchmarks.OTHERS
        rows: list[evaluation.Row] = []
        with _one_thread():
            for points in measured.by_host_type(one.points for one in _read(parsed_args.file)):
                rows += evaluation.evaluate(points, others)
        rows = evaluation.ordered(rows)
        if parsed_args.plot:
            from tracon_watcher.cmd import model_plot
            model_plot.draw(rows, parsed_args.plot)
        columns = tuple(field.name for field in dataclasses.fields(evaluation.Row))
        return columns, [tuple(_shown(value, parsed_args)
                               for value in dataclasses.astuple(row)) for row in rows]


class Show(lister.Lister):
    """Show a stored model: its terms, where it holds, how wrong it was."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', help='a model (JSON) of `tracon model fit`')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        rows = describe(store.load_any(parsed_args.file))
        return ('part', 'name', 'value'), [
            (part, name, _shown(value, parsed_args)) for part, name, value in rows]


def describe(model: store.AnyModel) -> list[tuple[str, str, Any]]:
    """Return what a model consists of, as rows (part, name, value)."""
    if isinstance(model, anchored.AnchoredModel):
        head: Any = model
        rows = [('model', 'form', 'anchored')]
        terms = _anchored_terms(model)
    else:
        head = model.head
        rows = [('model', 'form', model.form), ('model', 'application', head.application)]
        terms = _application_terms(model)
    rows += [('model', 'response', head.response), ('model', 'host_type', head.host_type)]
    rows += [('training', name, value) for name, value in head.training.items()
             if name != 'files']
    rows += [('training', 'file', one['name']) for one in head.training.get('files', ())]
    rows += terms
    for part in ('target_minimum', 'target_maximum', 'background_maximum'):
        rows += [('hull', f'{part} {name}', float(value))
                 for name, value in zip(NAMES, getattr(head.hull, part))]
    for test, found in head.errors.items():
        rows += [('errors', f'{test} {name}', value) for name, value in found.items()]
    return rows


def _anchored_terms(model: anchored.AnchoredModel) -> list[tuple[str, str, Any]]:
    rows: list[tuple[str, str, Any]] = [
        ('capacity', name, float(value)) for name, value in zip(NAMES, model.capacity)]
    for j, name in enumerate(_SHORT):
        rows.append(('term', f'background {name}', float(model.linear[j])))
    for j, first in enumerate(_SHORT):
        for k in range(j, len(_SHORT)):
            value = model.quadratic[j, k] * (1 if j == k else 2)
            rows.append(('term', f'background {first} × background {_SHORT[k]}', float(value)))
    for i, first in enumerate(_SHORT):
        for j, name in enumerate(_SHORT):
            rows.append(('term', f'target {first} × background {name}',
                         float(model.interaction[i, j])))
    rows = [row for row in rows if row[0] != 'term' or row[2] != 0]
    kinks = model.hinges
    for k in range(len(kinks.threshold)):
        where = ' + '.join(
            [f'{value:.3g} target {name}' for name, value in zip(_SHORT, kinks.target[k]) if value]
            + [f'{value:.3g} background {name}'
               for name, value in zip(_SHORT, kinks.background[k]) if value])
        weight = ' + '.join([f'{kinks.weight[k]:.3g}'] + [
            f'{value:.3g} target {name}'
            for name, value in zip(_SHORT, kinks.target_weight[k]) if value])
        rows.append(('kink', f'{where} > {kinks.threshold[k]:.3g}', weight))
    width = model.interval
    rows += [('interval', 'offset', width.offset), ('interval', 'slope', width.slope)]
    return rows + [('interval', f'quantile {level:g}', float(value))
                   for level, value in zip(width.levels, width.quantiles)]


def _application_terms(model: Any) -> list[tuple[str, str, Any]]:
    if isinstance(model, weighted_mean.WeightedMeanModel):
        return [('model', 'components', len(model.components)),
                ('model', 'neighbours', model.neighbours)]
    columns = [f'{whose} {name}' for whose in ('target', 'background') for name in _SHORT]
    rows: list[tuple[str, str, Any]] = [('term', 'constant', model.intercept)]
    for powers, value in zip(model.powers, model.coefficients):
        factors = [name for name, power in zip(columns, powers) for _ in range(int(power))]
        # As the coefficient of the characteristics themselves, in their units.
        size = float(np.prod(model.scale ** powers))
        rows.append(('term', ' × '.join(factors), float(value) / size))
    return rows


def _form(model: store.AnyModel) -> str:
    return 'anchored' if isinstance(model, anchored.AnchoredModel) else model.form


def _shown(value: Any, parsed_args: argparse.Namespace) -> Any:
    """Return a number rounded where people read it; what is undefined is empty, in JSON null."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None if parsed_args.formatter in ('json', 'yaml') else ''
        if parsed_args.formatter == 'table':
            return f'{value:.4g}'
    return value

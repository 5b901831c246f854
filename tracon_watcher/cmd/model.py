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
import itertools
import pathlib
import re
from typing import Any
from typing import Iterator

from cliff import lister
import numpy as np

from tracon_watcher.characteristics import NAMES
from tracon_watcher.cmd import packaged
from tracon_watcher import errors
from tracon_watcher.prediction import pairwise
from tracon_watcher.prediction import store
from tracon_watcher.prediction import weighted_mean
from tracon_watcher import progress


#: Names of :data:`tracon_watcher.models.tables.TABLES`, which takes seconds to import.
_TABLES = ('errors', 'unknown-programs', 'ablation', 'extremes', 'design', 'co-residents',
           'adaptation', 'refit', 'work')
# Names that fit into a table.
_SHORT = ('reads', 'writes', 'guest CPU', 'host CPU')


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
        datasets = packaged.read(parsed_args.file)
        with _one_thread():
            models = _fitted(datasets, parsed_args.per_application)
        folder = pathlib.Path(parsed_args.output)
        rows = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, model, held_out in models:
                path = folder / (re.sub(r'[^\w.-]+', '_', name) + '.json')
                store.save(model, path)
                rows.append((str(path), _form(model),
                             packaged.shown(held_out['mean'], parsed_args), held_out['points']))
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
    """Show how wrong each model is, a row a response, application and model; or what else the
    measurements tell of the models.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_files(parser)
        parser.add_argument('--benchmarks', action='store_true',
                            help='also other learners (forest, boosted trees, Gaussian process); '
                                 'takes several minutes')
        parser.add_argument('--test', metavar='FILE', action='append', default=[],
                            help='also predict the measurements of this file, which no model is '
                                 'fitted to')
        parser.add_argument('--table', choices=_TABLES, default=_TABLES[0],
                            help='which table; errors of each model by default')
        parser.add_argument('--plot', metavar='FILE',
                            help='also draw errors as bars, as .png or .html')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher.models import dataset
        from tracon_watcher.models import tables
        if parsed_args.plot and pathlib.Path(parsed_args.plot).suffix not in ('.png', '.html'):
            raise errors.InvalidOption('--plot', parsed_args.plot,
                                       'expected a file name that ends in .png or .html')
        if parsed_args.table != _TABLES[0]:
            for name in ('benchmarks', 'plot'):
                if getattr(parsed_args, name):
                    raise errors.InvalidOption('--table', parsed_args.table,
                                               f'--{name} belongs to the table {_TABLES[0]}')
        if parsed_args.test and not tables.TABLES[parsed_args.table].tests:
            raise errors.InvalidOption('--table', parsed_args.table,
                                       '--test says nothing there: its points come in an order')
        others = None
        if parsed_args.benchmarks:
            from tracon_watcher.models import benchmarks
            others = benchmarks.OTHERS
        datasets = packaged.read(parsed_args.file)
        tests = dataset.read_all(parsed_args.test)
        dataset.check_held_out(datasets, tests)
        study = tables.Study(datasets, tests, others, report=progress.Progress(1.0).report)
        table = tables.TABLES[parsed_args.table]
        with _one_thread():
            rows = table.rows(study)
            if parsed_args.plot:
                from tracon_watcher.cmd import model_plot
                model_plot.draw(study.errors, parsed_args.plot)
        return table.columns, [tuple(packaged.shown(value, parsed_args) for value in row)
                               for row in rows]


class Show(lister.Lister):
    """Show a stored model: its terms, where it holds, how wrong it was."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', help='a model (JSON) of `tracon model fit`')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        rows = describe(store.load_any(parsed_args.file))
        return ('part', 'name', 'value'), [
            (part, name, packaged.shown(value, parsed_args)) for part, name, value in rows]


def describe(model: store.AnyModel) -> list[tuple[str, str, Any]]:
    """Return what a model consists of, as rows (part, name, value)."""
    if isinstance(model, pairwise.PairwiseModel):
        head: Any = model
        rows = [('model', 'form', 'pairwise')]
        terms = _pairwise_terms(model)
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


def _pairwise_terms(model: pairwise.PairwiseModel) -> list[tuple[str, str, Any]]:
    rows: list[tuple[str, str, Any]] = [
        ('capacity', name, float(value)) for name, value in zip(NAMES, model.capacity)]
    of_target = ['', *(f'target {name}' for name in _SHORT),
                 *(f'target {a} × target {b}' for a, b in _pairs())]
    of_neighbour = [*(f'neighbour {name}' for name in _SHORT),
                    *(f'neighbour {a} × neighbour {b}' for a, b in _pairs())]
    rows += [('term', ' × '.join(filter(None, (first, second))), float(value))
             for first, line in zip(of_target, model.coefficients)
             for second, value in zip(of_neighbour, line) if value]
    rows += [('compression', name, float(value))
             for name, value in zip(NAMES, model.compression)]
    rows += [('model', 'ceiling', model.ceiling), ('model', 'crowding', model.crowding)]
    width = model.interval
    rows += [('interval', 'offset', width.offset), ('interval', 'slope', width.slope)]
    return rows + [('interval', f'quantile {level:g}', float(value))
                   for level, value in zip(width.levels, width.quantiles)]


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield the names of the products of two characteristics, in the order of their terms."""
    return itertools.combinations_with_replacement(_SHORT, 2)


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
    return 'pairwise' if isinstance(model, pairwise.PairwiseModel) else model.form

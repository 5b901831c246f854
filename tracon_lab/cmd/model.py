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

"""``tracon model``: fit, evaluate and show TRACON's models."""

import argparse
import pathlib
import re
from typing import Any

from cliff import lister
import numpy as np

from tracon_lab.cmd import packaged

from tracon_lab.models import store
from tracon_lab.models import weighted_mean
from tracon_watcher.characteristics import NAMES
from tracon_watcher import errors
from tracon_watcher import numerals


#: Names of :data:`tracon_lab.models.tables.TABLES`, which takes seconds to import.
_TABLES = ('errors', 'unknown-programs', 'adaptation')
# Names that fit into a table.
_SHORT = ('reads', 'writes', 'guest CPU', 'host CPU')


def _one_thread() -> Any:
    # The matrices are small: threads only wait for each other, all the more on a busy machine.
    import threadpoolctl
    return threadpoolctl.threadpool_limits(1)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('file', nargs='*', metavar='FILE',
                        help='measurements (CSV) (default: those in the package)')


class Fit(lister.Lister):
    """Fit TRACON's models (WMM, LM, NLM) of each program, response and host type."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_files(parser)
        parser.add_argument('--output', metavar='DIR', required=True,
                            help='folder for the JSON files; it is created if missing')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.models import fit
        datasets = packaged.read(parsed_args.file)
        with _one_thread():
            models = fit.application_models(datasets)
        folder = pathlib.Path(parsed_args.output)
        rows = []
        folder.mkdir(parents=True, exist_ok=True)
        for model in models:
            head = model.head
            name = '-'.join((head.host_type, head.application, head.training['model'],
                             head.response))
            path = folder / (re.sub(r'[^\w.-]+', '_', name) + '.json')
            store.save(model, path)
            wrong = head.errors['by_background']
            rows.append((str(path), model.form, numerals.shown(wrong['mean'], parsed_args),
                         wrong['points']))
        return ('file', 'form', 'mean_error', 'points'), rows


class Evaluate(lister.Lister):
    """Show the errors of each model, a row a response, application and model; or another table."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_files(parser)
        parser.add_argument('--test', metavar='FILE', action='append', default=[],
                            help='measurements to predict as well, to which no model is fitted')
        parser.add_argument('--table', choices=_TABLES, default=_TABLES[0],
                            help='table to show (default: the errors of each model)')
        parser.add_argument('--plot', metavar='FILE',
                            help='plot file of errors as bars (.png or .html)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.models import dataset
        from tracon_lab.models import tables
        if parsed_args.plot and pathlib.Path(parsed_args.plot).suffix not in ('.png', '.html'):
            raise errors.InvalidOption('--plot', parsed_args.plot,
                                       'expected a file name that ends in .png or .html')
        if parsed_args.plot and parsed_args.table != _TABLES[0]:
            raise errors.InvalidOption('--table', parsed_args.table,
                                       f'--plot belongs to the table {_TABLES[0]}')
        if parsed_args.test and not tables.TABLES[parsed_args.table].tests:
            raise errors.InvalidOption('--table', parsed_args.table,
                                       f'--test belongs to the table {_TABLES[0]}')
        datasets = packaged.read(parsed_args.file)
        tests = dataset.read_all(parsed_args.test)
        dataset.check_held_out(datasets, tests)
        study = tables.Study(datasets, tests)
        table = tables.TABLES[parsed_args.table]
        with _one_thread():
            rows = table.rows(study)
            if parsed_args.plot:
                from tracon_lab.cmd import model_plot
                model_plot.draw(study.errors, parsed_args.plot)
        return table.columns, numerals.rows(rows, parsed_args)


class Show(lister.Lister):
    """Show a stored model: its terms, its range and its errors."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', help='model of `tracon model fit` (JSON)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        rows = describe(store.load(parsed_args.file))
        return ('part', 'name', 'value'), [
            (part, name, numerals.shown(value, parsed_args)) for part, name, value in rows]


def describe(model: store.Model) -> list[tuple[str, str, Any]]:
    """Return what a model consists of, as rows (part, name, value)."""
    head = model.head
    rows: list[tuple[str, str, Any]] = [
        ('model', 'form', model.form), ('model', 'application', head.application),
        ('model', 'response', head.response), ('model', 'host_type', head.host_type)]
    rows += [('training', name, value) for name, value in head.training.items()
             if name != 'files']
    rows += [('training', 'file', one['name']) for one in head.training.get('files', ())]
    rows += _terms(model)
    for part in ('target_minimum', 'target_maximum', 'background_maximum'):
        rows += [('hull', f'{part} {name}', float(value))
                 for name, value in zip(NAMES, getattr(head.hull, part))]
    for test, found in head.errors.items():
        rows += [('errors', f'{test} {name}', value) for name, value in found.items()]
    return rows


def _terms(model: store.Model) -> list[tuple[str, str, Any]]:
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

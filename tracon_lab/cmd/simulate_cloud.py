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
"""``tracon simulate cloud``: a day in a cloud, by several ways to run it."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import math
import multiprocessing
import pathlib
import resource
import time
from typing import Any

from cliff import lister
import numpy as np

from tracon_lab.cmd import arguments
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors
from tracon_watcher import numerals

#: After the first two: what is found each day, and how many more VMs there can be.
COLUMNS = ('vms', 'mean', 'p99', 'in_breach_percent', 'hosts_stretched_percent', 'refused',
           'refused_in_error', 'migrations', 'cpu_seconds', 'wall_seconds', 'peak_mib',
           'p99_change', 'more_vms_percent')
#: Of these, those that compare with stock Nova.
_COMPARED = 2
_P99 = COLUMNS.index('p99')
STOCK = 'stock Nova'
_HOSTS = 40


class Cloud(lister.Lister):
    """Simulate a day in a cloud, and show how much VMs slow each other down by who runs it.

    VMs use CPU as real VMs did, by a file of traces, or are those of a real cloud (--vms). Nova's
    own weighers, and this extension's judgement, see what they see in a cloud; how much VMs really
    slow each other down is found without it. Each way to run the cloud gets the same VMs. With
    several days values are means over them, with half their 95 % confidence intervals (after "±"
    in the table, else in columns that end in _ci). p99_change is p99 less that of stock Nova, with
    the same VMs. more_vms_percent says how many more VMs there can be with the P99 that stock Nova
    has, by interpolation between several --vcpus-per-core. cpu_seconds is the time of this
    extension, telemetry and all; wall_seconds and peak_mib are the simulation's own time and
    memory.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--traces', type=pathlib.Path, metavar='FILE',
            help='CSV file (or .csv.xz) with a line for each VM and day: columns m0, m5 to m1435 '
                 'with its CPU use in per cent at each minute (default: synthetic traces)')
        add('--vms', type=pathlib.Path, metavar='FILE',
            help='file by tracon export: instead of VMs with traces, those of a real cloud on its '
                 'days, the first one first; --vcpus-per-core says on how many hosts')
        add('--hosts', type=numerals.whole(2, 10000), metavar='N',
            help=f'number of hosts (default: {_HOSTS})')
        add('--cores', type=numerals.whole(1, 1024), default=16, metavar='N',
            help='cores of each host (default: %(default)s)')
        add('--vcpus-per-core', type=arguments.listed(numerals.number(0.1, 100)), default=[6.0],
            metavar='NUMBER,…', help='vCPUs that run for each core, in the mean (default: 6)')
        add('--by', type=arguments.listed(str), metavar='NAME,…',
            help='who runs the cloud (default: all ways)')
        add('--days', type=numerals.whole(1, 1000), default=1, metavar='N',
            help='days, each with other VMs (default: %(default)s)')
        add('--limit', type=numerals.number(1, 1000), default=1.2, metavar='SLOWDOWN',
            help='slowdown that each VM tolerates (default: %(default)s)')
        add('--hidden', type=numerals.number(0, 1), default=0.1, metavar='SHARE',
            help='share of hosts with contention that no counter shows (default: %(default)s)')
        add('--alike', type=numerals.number(0, 10), default=0.15, metavar='SHARE',
            help='by how much VMs of a project differ: standard deviation of their places among '
                 'all VMs by CPU use, 0 to 1 (default: %(default)s)')
        add('--candidates', type=numerals.whole(1), default=100, metavar='N',
            help='hosts that Placement names for a request, at most (default: %(default)s)')
        add('--seed', type=numerals.whole(0), default=1, help='(default: %(default)s)')
        add('--processes', type=numerals.whole(1), default=multiprocessing.cpu_count(),
            metavar='N', help='simulations at a time (default: one for each CPU)')
        add('--decisions', type=pathlib.Path, metavar='FILE',
            help='file for the decisions of nova-scheduler, as the engine stores them, for tracon '
                 'replay; with one way to run the cloud, one density and one day')
        add('--plot', type=arguments.picture('.png', '.svg'), metavar='FILE',
            help='plot file of the 99th percentile over vCPUs per core (PNG or SVG)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.simulated_cloud import nova_scheduler
        from tracon_watcher import progress
        names = parsed_args.by or list(nova_scheduler.ARMS)
        for name in names:
            if name not in nova_scheduler.ARMS:
                raise errors.InvalidOption('--by', name,
                                           'expected ' + ', '.join(nova_scheduler.ARMS))
        if parsed_args.vms and (parsed_args.hosts or parsed_args.traces):
            name = 'hosts' if parsed_args.hosts else 'traces'
            raise errors.InvalidOption(f'--{name}', str(getattr(parsed_args, name)), (
                '--vms has the VMs, and --vcpus-per-core says on how many hosts; leave it out'))
        tasks = [(row, place, day) for row in range(len(parsed_args.vcpus_per_core))
                 for place in range(len(names)) for day in range(parsed_args.days)]
        if parsed_args.decisions and (
                len(tasks) > 1 or nova_scheduler.ARMS[names[0]].mode is None):
            raise errors.InvalidOption('--decisions', str(parsed_args.decisions), (
                'expected one way with this extension in nova-scheduler, such as --by weigh, and '
                'one value of --vcpus-per-core and of --days'))
        shown = progress.Progress(len(tasks))
        densities = parsed_args.vcpus_per_core
        days = np.empty((len(densities), len(names), parsed_args.days,
                         len(COLUMNS) - _COMPARED))
        # Nova's options belong to a process, so that each simulation has its own.
        with concurrent.futures.ProcessPoolExecutor(
                parsed_args.processes, multiprocessing.get_context('spawn'),
                max_tasks_per_child=1) as pool:
            running = {pool.submit(_simulate, vars(parsed_args) | {
                'density': densities[row], 'name': names[place], 'day': day}): (row, place, day)
                for row, place, day in tasks}
            for one in concurrent.futures.as_completed(running):
                row, place, day = running[one]
                days[row, place, day] = one.result()
                shown.report(f'{names[place]}, {densities[row]:g}, day {day + 1}', 1.0)
        means = _means(days, densities, names)
        widths = _half_widths(days, densities, names)
        if parsed_args.plot:
            _plot(parsed_args.plot, densities, names, means[..., _P99], widths[..., _P99])
        table = parsed_args.formatter == 'table'
        return (('vcpus_per_core', 'run_by', *COLUMNS,
                 *(() if table else (f'{name}_ci' for name in COLUMNS))),
                [(density, name, *_cells(means[row, place], widths[row, place], parsed_args))
                 for row, density in enumerate(densities) for place, name in enumerate(names)])


def _cells(means: FloatArray, widths: FloatArray, parsed_args: argparse.Namespace) -> list[Any]:
    shown, width = ([numerals.shown(value, parsed_args) for value in values.tolist()]
                    for values in (means, widths))
    if parsed_args.formatter != 'table':
        return shown + width
    return [f'{one} ± {float(f"{float(half):.1g}"):g}' if half else one
            for one, half in zip(shown, width)]


def _simulate(given: dict[str, Any]) -> tuple[float, ...]:
    """Return what is found in a day; see :data:`COLUMNS`."""
    from tracon_lab.simulated_cloud import day
    from tracon_lab.simulated_cloud import demand
    from tracon_lab.simulated_cloud import nova_scheduler
    began, seed = time.monotonic(), given['seed'] + 1000 * given['day']
    hosts, cores = given['hosts'] or _HOSTS, given['cores']
    if given['vms']:
        vms = demand.recorded(given['vms'], given['day'])
        if vms.vcpus.max() > cores:
            raise errors.InvalidOption('--cores', cores, (
                f'a VM has {vms.vcpus.max()} vCPUs; state the cores of its host'))
        hosts = max(round(vms.running() / given['density'] / cores), 2)
    else:
        traces = demand.read(given['traces']) if given['traces'] else demand.synthetic(5000, seed)
        vms = demand.draw(traces, given['density'] * hosts * cores, seed, given['alike'], cores)
    with (open(given['decisions'], 'w', encoding='utf-8') if given['decisions']
          else contextlib.nullcontext()) as stream:
        outcome = day.Day(vms, day.Settings(
            hosts=hosts, cores=cores, limit=given['limit'],
            hidden=given['hidden'], candidates=given['candidates'], seed=seed),
            nova_scheduler.ARMS[given['name']]).run(decisions=stream)
    return (outcome.running, float(outcome.slowdown.mean()),
            float(np.percentile(outcome.slowdown, 99)),
            100.0 * day.in_breach(outcome, given['limit']), 100.0 * outcome.stretched,
            outcome.refused, outcome.in_error, outcome.migrations, outcome.seconds,
            time.monotonic() - began,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0)


def _means(days: FloatArray, densities: list[float], names: list[str]) -> FloatArray:
    """Return all columns but the first two, (densities, names, columns), of several days.

    How many more VMs there can be with the P99 of stock Nova is found on the means over days.

    :param days: (densities, names, days, columns), without those that compare with stock Nova
    """
    found: FloatArray = np.pad(days.mean(axis=2), ((0, 0), (0, 0), (0, _COMPARED)),
                               constant_values=math.nan)
    p99 = found[..., _P99]
    for place, name in enumerate(names):
        if STOCK in names and name != STOCK:
            found[:, place, -2] = p99[:, place] - p99[:, names.index(STOCK)]
            own, at = zip(*sorted(zip(p99[:, place], densities)))
            found[:, place, -1] = 100.0 * (np.interp(
                p99[:, names.index(STOCK)], own, at, math.nan, math.nan) / densities - 1.0)
    return found


def _half_widths(days: FloatArray, densities: list[float], names: list[str]) -> FloatArray:
    """Return half the 95 % confidence intervals of the same.

    It is the jackknife: one day after the other is left out, in all rows at once, since in a day
    each way has the same VMs. Of a mean that is Student's interval.
    """
    from scipy import stats
    count = days.shape[2]
    if count < 2:
        return np.full((len(densities), len(names), len(COLUMNS)), math.nan)
    parts = np.array([_means(np.delete(days, day, axis=2), densities, names)
                      for day in range(count)])
    squares = ((parts - parts.mean(axis=0)) ** 2).sum(axis=0)
    found: FloatArray = stats.t.ppf(0.975, count - 1) * np.sqrt((count - 1) / count * squares)
    return found


def _plot(path: pathlib.Path, densities: list[float], names: list[str], p99: FloatArray,
          widths: FloatArray) -> None:
    """Draw a bar for each way to run the cloud, in groups by vCPUs per core.

    :param p99: (densities, names), and half its confidence interval, NaN for none
    """
    from matplotlib import cm
    from matplotlib import figure
    from tracon_lab.simulated_cloud import nova_scheduler
    # Without this extension grey, with it green, the oracle white.
    judged = [nova_scheduler.ARMS[name].judged for name in names]
    shades = {True: iter(cm.YlGn(np.linspace(0.4, 0.9, sum(judged)))),
              False: iter(cm.Greys(np.linspace(0.75, 0.3, len(names) - sum(judged))))}
    drawing = figure.Figure(figsize=(8, 3.6), layout='constrained')
    axes = drawing.subplots()
    # A bar that is much higher than most is cut, with its value at its end.
    highest = 1.0 + 1.4 * (float(np.percentile(p99, 85)) - 1.0)
    for place, name in enumerate(names):
        bars = axes.bar(
            np.arange(len(densities)) + (place - (len(names) - 1) / 2) * 0.85 / len(names),
            p99[:, place] - 1.0, 0.8 / len(names), bottom=1.0, label=name,
            color=('white' if nova_scheduler.ARMS[name].oracle else next(shades[judged[place]])),
            edgecolor='black', linewidth=0.5, yerr=widths[:, place],
            error_kw={'elinewidth': 0.8})
        for bar, value in zip(bars, p99[:, place].tolist()):
            axes.annotate(f'{value:.2f}', (bar.get_x() + bar.get_width() / 2,
                                           min(value, highest * 0.93)),
                          (0, 2), textcoords='offset points', ha='center', va='bottom',
                          fontsize=7, rotation=90, bbox={'color': 'white', 'pad': 0.5})
    axes.set(xlabel='vCPUs that run for each core', ylabel='99th percentile of slowdown',
             xticks=range(len(densities)), xticklabels=[f'{one:g}' for one in densities],
             ylim=(1.0, highest))
    axes.spines[['top', 'right']].set_visible(False)
    drawing.legend(loc='outside right upper', frameon=False, fontsize=8)
    drawing.savefig(path, dpi=110)

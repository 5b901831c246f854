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
"""``tracon cloud demo``: a VM begins to hammer the disk of its host, in a whole real cloud."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
from typing import Any

from cliff import lister

from tracon_watcher import numerals
from tracon_watcher import progress

_DIRECTORY = pathlib.Path('/var/tmp/tracon-cloud')
COLUMNS = ('after', 'vm', 'host', 'measured', 'observed', 'predicted', 'culprit', 'share')
HIDDEN_COLUMNS = ('after', 'host', 'state', 'ratio', 'low', 'observed', 'predicted')


class Demo(lister.Lister):
    """Demonstrate that a VM that begins to hammer the disk is detected and avoided.

    Starts a cloud with real guests (see "tracon cloud start"; needs root) with tracon-engine, the
    filter and weigher in Nova, and the strategy in Watcher; or uses the running one. Then four VMs
    run, and one of them begins to read as much as it can. The table shows each VM over time: the
    slowdown that the program in the guest measured, and beside it the output of "openstack
    interference vm list".

    With --hidden a process of a host, which no counter of a VM shows, is detected by the host's
    sensor, and the next VM is placed elsewhere. The table shows the output of "openstack
    interference host show" and "vm list".
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--directory', type=pathlib.Path, default=_DIRECTORY, metavar='DIR',
            help='folder of all files of the cloud (default: %(default)s)')
        add('--output', type=pathlib.Path, default=pathlib.Path('tracon-cloud-demo'),
            metavar='DIR', help='folder for the results and their plot (default: %(default)s)')
        add('--hidden', action='store_true',
            help='demonstrate contention that no counter shows and a sensor detects')
        add('--stop', action='store_true',
            help='stop the cloud at the end, instead of starting Horizon')
        add('--patience', type=numerals.number(1, 86400), default=300.0, metavar='SECONDS',
            help='longest wait for any single event (default: %(default)g)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.testcloud import cloud
        from tracon_lab.testcloud import errors as cloud_errors
        from tracon_lab.testcloud import hidden
        from tracon_lab.testcloud import product
        from tracon_lab.testcloud import settings as settings_module
        from tracon_lab.testcloud import story

        told = progress.Progress(1.0)
        directory = parsed_args.directory.absolute()
        try:
            settings = settings_module.Settings.load(directory)
        except cloud_errors.NoCloud:
            settings = settings_module.Settings(directory=directory)
        made = cloud.TestCloud(product.with_product(settings),
                               lambda step, seconds, share: told.say(f'{share:4.0%}  {step.name}'))
        ran, horizon = made.up, ''
        try:
            made.start()
            product.start_engine(made, probes=parsed_args.hidden)
            kind = hidden.Hidden if parsed_args.hidden else story.Story
            outcome = kind(made, told.say).play(parsed_args.patience)
            if not parsed_args.stop:
                told.say('starting Horizon')
                horizon = product.start_horizon(made)
        finally:
            if not (ran or horizon):
                told.say('stopping the cloud')
                made.stop()
        parsed_args.output.mkdir(parents=True, exist_ok=True)
        path = parsed_args.output / 'outcome.json'
        path.write_text(json.dumps(dataclasses.asdict(outcome), indent=1) + '\n',
                        encoding='utf-8')
        _draw(outcome, parsed_args.output / 'outcome.png')
        for line in outcome.told():
            told.say(line)
        if horizon:
            told.say(f'Horizon is at {horizon}, with user admin and password {settings.password}; '
                     f'{sys.argv[0]} cloud stop --directory {directory} stops the cloud')
        digits = parsed_args.formatter == 'table'
        if parsed_args.hidden:
            return HIDDEN_COLUMNS, [[
                round(one.after, 1), one.host, one.state,
                *(_shown(value, digits) for value in (one.ratio, one.low, one.observed,
                                                      one.predicted))] for one in outcome.looks]
        return COLUMNS, [[
            round(one.after, 1), one.name, one.host,
            *(_shown(value, digits) for value in (one.measured, one.observed, one.predicted)),
            one.culprit or None, _shown(one.share, digits)] for one in outcome.sights]


def _shown(value: float | None, people: bool) -> Any:
    if value is None:
        return '' if people else None
    return f'{value:.2f}' if people else value


def _draw(outcome: Any, path: pathlib.Path) -> None:
    try:
        from tracon_lab.cmd import cloud_plot
    except ImportError:
        return
    draw = cloud_plot.draw_hidden if hasattr(outcome, 'looks') else cloud_plot.draw
    draw(outcome).savefig(path, dpi=120)

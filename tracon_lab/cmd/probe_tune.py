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

"""``tracon probe tune``: how gently a phase can be run and still feel contention."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from cliff import lister


class Tune(lister.Lister):
    """Find the gentlest setting of a phase that still detects contention, on hosts like this one.

    Beside guests of this machine it lowers the intensity until the probe slows no neighbour
    without trouble, then the duration while it still detects the trouble of others. Needs root,
    libvirt, QEMU, genisoimage, two cores, and a machine without other load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        from tracon_watcher.probe import phases

        parser = super().get_parser(prog_name)
        parser.add_argument('--phase', required=True, choices=tuple(phases.PHASES))
        parser.add_argument('--output', required=True, type=pathlib.Path, metavar='FILE',
                            help='file for the setting, and each step with its evidence (JSON)')
        parser.add_argument('--cache', type=pathlib.Path, metavar='DIR',
                            help='folder of images')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[Any, ...]]]:
        from tracon_lab.testbed import interruption
        from tracon_lab.testbed import probe_scene
        from tracon_lab.testbed import probe_tuning
        from tracon_watcher import document
        from tracon_watcher.probe import images
        from tracon_watcher.probe import phases
        from tracon_watcher.probe import tuning

        interruption.signals.install()
        steps: list[Any] = []

        def report(step: Any) -> None:
            steps.append(step)
            self.app.LOG.warning('%s: %s', _of_step(step), step.trial.evidence)

        name, values = probe_tuning.INTENSITIES[parsed_args.phase]
        try:
            with probe_scene.built(parsed_args.cache or images.default_cache()) as scene:
                found = tuning.tune(
                    probe_tuning.STARTS[parsed_args.phase], name, values, probe_tuning.DURATIONS,
                    probe_tuning.Trials(scene, phases.PHASES[parsed_args.phase]), report)
        finally:
            # Steps of a tuning that fails are evidence, too.
            if steps:
                document.write(probe_tuning.document(
                    parsed_args.phase, steps[-1].setting, steps), parsed_args.output)
        document.write(probe_tuning.document(parsed_args.phase, found, steps), parsed_args.output)
        return (('Rate (1/s)', 'Seconds', 'Amount', 'Neighbours', 'Harmed', 'Detected', 'Passed'),
                [(step.setting.rate, step.setting.seconds, step.setting.amount,
                  'in trouble' if step.troubled else 'without trouble',
                  '' if step.troubled else 'yes' if step.trial.harmed else 'no',
                  ('yes' if step.trial.detected else 'no') if step.troubled else '',
                  'yes' if step.kept else 'no') for step in steps])


def _of_step(step: Any) -> str:
    return (f'{step.setting.rate:g} a second for {step.setting.seconds:g} s, amount '
            f'{step.setting.amount}')

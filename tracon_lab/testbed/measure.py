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
"""From settings to a measurement file: the testbed set up, calibrated, used, taken down."""

import contextlib
import dataclasses
import datetime
import os
import pathlib
import platform
import typing

from tracon_lab.models import dataset
from tracon_lab.testbed import acceptance
from tracon_lab.testbed import application_image
from tracon_lab.testbed import application_plans
from tracon_lab.testbed import errors
from tracon_lab.testbed import host_types
from tracon_lab.testbed import interruption
from tracon_lab.testbed import plan as plans
from tracon_lab.testbed import programs
from tracon_lab.testbed import rows
from tracon_lab.testbed import run
from tracon_lab.testbed import testbed
from tracon_lab.testbed import window
from tracon_watcher.probe import images


@dataclasses.dataclass(frozen=True)
class Settings:
    """What an operator chose."""

    host_type: str
    output: pathlib.Path
    plan: str
    seed: int
    core: int
    accelerator: str = 'auto'
    window_seconds: float = 2.0
    limits: acceptance.Limits = acceptance.Limits()
    limit_minutes: float | None = None
    cache: pathlib.Path | None = None
    command: str = ''


def measure(settings: Settings, report: typing.Callable[[str], None],
            plan: plans.Plan | None = None) -> bool:
    """Measure until the plan is done or time is up. Says whether it is done.

    :param plan: instead of the one the settings name
    :raises TestbedError: when the testbed cannot be set up here
    """
    host_type = host_types.named(settings.host_type)
    plan = plan or application_plans.planned(settings.plan, host_type, settings.seed)
    file = rows.File(settings.output)
    limits = settings.limits
    cores = os.sched_getaffinity(0)
    if not cores - {settings.core}:
        raise errors.TestbedError('the testbed measures on one core and watches from another: '
                                  'this machine has only one')
    # What is started from here on inherits this; guests are pinned by libvirt.
    os.sched_setaffinity(0, cores - {settings.core})
    try:
        with contextlib.ExitStack() as stack:
            cache = (settings.cache or images.default_cache()).absolute()
            applications = application_image.build(cache, report) if plan.applications else None
            bed = stack.enter_context(testbed.Testbed(
                host_type, cache, settings.core, _accelerator(settings, file), plan.guests,
                database=not plan.applications, applications=applications))
            report('guests are up (%s)' % bed.accelerator)
            iterations = _iterations(file, bed)
            file.begin(_header(settings, plan, limits, bed, iterations))
            catalogue = (programs.real_applications() if plan.applications else
                         programs.programs(host_type.open_reads, host_type.open_writes))
            with interruption.signals.held():
                observer = window.Observer(bed, catalogue, iterations, settings.window_seconds,
                                           limits)
                stack.callback(observer.close)
            observer.warm_up()

            def recover() -> None:
                report('a guest hangs: all are restarted')
                for side in bed.sides:
                    bed.boot(side)
                observer.warm_up()

            worker = run.Run(plan, file, settings.output.with_suffix('.journal'), observer,
                             limits.attempts, recover, report)
            limit = settings.limit_minutes
            return worker.work(None if limit is None else limit * 60)
    finally:
        os.sched_setaffinity(0, cores)


def _accelerator(settings: Settings, file: rows.File) -> str:
    """A file goes on with the accelerator it began with."""
    begun = file.header.get('accelerator')
    return {'tcg': 'qemu', 'kvm': 'kvm', None: settings.accelerator}.get(
        begun, settings.accelerator)


def _iterations(file: rows.File, bed: testbed.Testbed) -> float:
    """Calibrated once a file: programs are the same in a run that is continued."""
    begun = file.header.get('iterations_per_second')
    return float(begun) if begun else window.calibrate(bed)


def _header(settings: Settings, plan: plans.Plan, limits: acceptance.Limits,
            bed: testbed.Testbed, iterations: float) -> dict[str, str]:
    kind = bed.host_type
    return {
        'schema': dataset.SCHEMA,
        **bed.facts(),
        'cpu_model': _cpu_model(),
        'cores': str(os.cpu_count()),
        'measured_core': str(settings.core),
        'guests': '%d, each 1 vCPU and 512 MiB, all threads %s' % (
            plan.guests, 'on the measured core, those beside the target on another'
            if kind.separate_cores else 'on the measured core'),
        'date': datetime.datetime.now(datetime.UTC).date().isoformat(),
        'window_seconds': '%g' % settings.window_seconds,
        'foreign_load_limit': '%g of the measured core, %g of the others'
                              % (limits.foreign, limits.foreign_other),
        'steal_limit': '%g' % limits.steal,
        'canary_tolerance': '%g during a window, %g just before and after'
                            % (limits.canary, limits.bracket),
        'keep_awake': 'a process of the lowest priority (SCHED_IDLE) on the measured core',
        'iterations_per_second': '%.0f' % iterations,
        **({} if plan.applications else {
            'open_loop': 'openread %d reads/s, openwrite %d writes/s'
                         % (kind.open_reads, kind.open_writes)}),
        'generator_period_seconds': '%g' % (programs.GENERATOR_PERIOD * 1e-6),
        'plan': plan.name,
        'seed': str(settings.seed),
        'command': settings.command,
    }


def _cpu_model() -> str:
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.partition(':')[2].strip()
    return platform.machine()

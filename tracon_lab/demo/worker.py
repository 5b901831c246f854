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

"""A process that places the requests of one arm after another, each with a Nova of its own.

Reads the settings and then one task a line (JSON) from standard input, and answers with lines: how
far it is, and the result. Each task runs in a fork of this process, which has imported Nova and
started nothing: no task finds what another one has left, and each costs a few seconds less than
in a process of its own. Started by :mod:`tracon_lab.demo.crew`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
import time
import traceback
from typing import Any, Callable

# Nova's own libraries do small pieces of algebra on all cores, and wait for each other.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

from tracon_lab.demo import arms  # noqa: E402
from tracon_lab.demo import audit  # noqa: E402
from tracon_lab.demo import nova_box  # noqa: E402
from tracon_lab.demo import outcome  # noqa: E402
from tracon_lab.demo import settings as settings_module  # noqa: E402
from tracon_lab.demo import telemetry  # noqa: E402
from tracon_lab.demo import workload  # noqa: E402
from tracon_lab.models import dataset  # noqa: E402
from tracon_lab.simulator import truth as truths  # noqa: E402
from tracon_watcher import errors  # noqa: E402

#: Progress counts servers. Starting Nova takes as long as so many, and audits as these.
_OPENING, _WATCHER, _EACH_AUDIT = 5, 16, 4
#: Objects after which Python looks for garbage; at 700, a tenth of the time goes into that.
_GARBAGE = 100_000
#: What starting Nova would import in each fork again.
_NOVA = ('nova.api.openstack.compute.routes', 'nova.compute.manager', 'nova.conductor.manager',
         'nova.scheduler.manager', 'nova.virt.fake', 'nova.tests.functional.fixtures',
         'nova_filters.interference_filter', 'nova_filters.interference_weigher',
         'placement.deploy', 'placement.handler', 'scipy.optimize', 'scipy.sparse')
Say = Callable[[dict[str, Any]], None]


def perform(box: nova_box.NovaBox, settings: settings_module.Settings, truth: truths.Truth,
            task: dict[str, Any], say: Say) -> dict[str, Any]:
    """Run one arm of one seed, and the audits after it if that is asked for."""
    steps = _OPENING + settings.vms + (_WATCHER + 2 * _EACH_AUDIT if task['audit'] else 0)

    def progress(done: int) -> None:
        say({'say': 'progress', 'done': min(_OPENING + done, steps - 1), 'of': steps})

    started = time.monotonic()
    drawn = workload.draw(task['seed'], truth, settings.vms, settings.projects, settings.history,
                          settings.concentration)
    known = telemetry.Telemetry(box.snapshot_file, settings.host_names, truth, box.image,
                                drawn.history)
    result = arms.run(box, arms.ARMS[task['arm']], drawn, known, settings.on_all_refused,
                      task['seed'], progress)
    result['requests'] = len(drawn.requests)
    result['vms'] = outcome.judged(result['vms'], truth)
    if task['audit']:
        progress(settings.vms)
        try:
            result['audit'] = audit.run(
                box, known, truth, task['seed'], settings.departing,
                lambda count: progress(settings.vms + _WATCHER + _EACH_AUDIT * count))
        except errors.TraconError as error:
            # The arm itself is sound; what it has shown is not thrown away.
            result['audit_failure'] = str(error)
    return {**result, 'seconds': round(time.monotonic() - started, 1)}


def _alone(settings: settings_module.Settings, truth: truths.Truth, task: dict[str, Any],
           say: Say) -> None:
    """Perform a task in this process, a fork, and end the process."""
    def use(box: nova_box.NovaBox) -> None:
        say({'say': 'result', 'task': task,
             'result': perform(box, settings, truth, task, say)})
        # To stop its services and idle threads would take Nova seconds.
        os._exit(0)

    try:
        nova_box.opened(settings.host_names, use)
    except errors.TraconError as error:
        say({'say': 'error', 'text': str(error)})
    except BaseException as error:
        traceback.print_exc()
        say({'say': 'error', 'text': f'{type(error).__name__}: {error}'})
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    """Serve tasks until standard input ends."""
    answers = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)
    settings = settings_module.Settings.from_document(json.loads(sys.stdin.readline()))
    for name in _NOVA:
        importlib.import_module(name)
    truth = truths.of(dataset.read_all(settings.files), settings.host_type)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE, 20, 20)

    def say(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + '\n')

    say({'say': 'ready'})
    while line := sys.stdin.readline():
        with tempfile.TemporaryDirectory(prefix='tracon-demo-') as directory:
            child = os.fork()
            if not child:
                # Nova's databases stay there, since the process ends at once.
                os.environ['TMPDIR'] = tempfile.tempdir = directory
                _alone(settings, truth, json.loads(line), say)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            say({'say': 'error', 'text': f'Nova has ended with code {status}'})


if __name__ == '__main__':
    main()

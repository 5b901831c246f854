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

"""A Nova in a process of its own, which places the requests of one arm after another.

Reads the settings and then one task a line (JSON) from standard input, and answers with lines: how
far it is, and the result. Started by :mod:`tracon_watcher.demo.crew`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from typing import Any, Callable

# Nova's own libraries do small pieces of algebra on all cores, and wait for each other.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

from tracon_watcher.demo import arms  # noqa: E402
from tracon_watcher.demo import audit  # noqa: E402
from tracon_watcher.demo import nova_box  # noqa: E402
from tracon_watcher.demo import outcome  # noqa: E402
from tracon_watcher.demo import settings as settings_module  # noqa: E402
from tracon_watcher.demo import telemetry  # noqa: E402
from tracon_watcher.demo import workload  # noqa: E402
from tracon_watcher import errors  # noqa: E402
from tracon_watcher.models import dataset  # noqa: E402
from tracon_watcher.placement import assessment  # noqa: E402
from tracon_watcher.prediction import store  # noqa: E402
from tracon_watcher.simulator import truth as truths  # noqa: E402

_AUDIT = 12
Say = Callable[[dict[str, Any]], None]


def perform(box: nova_box.NovaBox, settings: settings_module.Settings, truth: truths.Truth,
            models: assessment.Models, task: dict[str, Any], say: Say) -> dict[str, Any]:
    """Run one arm of one seed, and the audit after it if that is asked for."""
    started = time.monotonic()
    drawn = workload.draw(task['seed'], truth, settings.vms, settings.projects, settings.history,
                          settings.concentration)
    box.clear()
    known = telemetry.Telemetry(box.snapshot_file, settings.host_names, settings.host_type,
                                models, box.image, drawn.history)
    # An audit takes about as long as this many servers.
    steps = settings.vms + (_AUDIT if task['audit'] else 0)
    result = arms.run(box, arms.ARMS[task['arm']], drawn, known, settings.on_all_refused,
                      lambda done: say({'say': 'progress', 'done': done, 'of': steps}))
    result['requests'] = len(drawn.requests)
    result['vms'] = outcome.judged(result['vms'], truth)
    if task['audit']:
        say({'say': 'progress', 'done': settings.vms, 'of': steps})
        try:
            result['audit'] = audit.run(box, known, truth, task['seed'])
        except errors.TraconError as error:
            # The arm itself is sound; what it has shown is not thrown away.
            result['audit_failure'] = str(error)
    return {**result, 'seconds': round(time.monotonic() - started, 1)}


def main() -> None:
    """Serve tasks until standard input ends."""
    answers = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)
    settings = settings_module.Settings.from_document(json.loads(sys.stdin.readline()))
    truth = truths.of(dataset.read_all(settings.files), settings.host_type)
    models = assessment.Models(*(store.load(path) for path in settings.models))

    def say(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + '\n')

    def use(box: nova_box.NovaBox) -> None:
        say({'say': 'ready'})
        for line in sys.stdin:
            task = json.loads(line)
            say({'say': 'result', 'task': task,
                 'result': perform(box, settings, truth, models, task, say)})

    try:
        nova_box.opened(settings.host_names, use)
    except errors.TraconError as error:
        say({'say': 'error', 'text': str(error)})
    except Exception as error:
        traceback.print_exc()
        say({'say': 'error', 'text': f'{type(error).__name__}: {error}'})
    # Nova's thread pools would wait for their idle threads.
    sys.stderr.flush()
    os._exit(0)


if __name__ == '__main__':
    main()

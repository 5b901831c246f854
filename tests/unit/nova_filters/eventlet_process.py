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

"""A scheduler with eventlet: a request holds what the preparation of a snapshot waits for.

``eventlet`` prints ``prepared`` when the preparation goes on once the request does, else ``hung``;
``threads`` does the same without eventlet. ``locks`` has a judge do all that it does natively, and
prints how many times that was, and where a lock that eventlet has patched was taken meanwhile.
"""

import sys

_EVENTLET = sys.argv[1:] != ['threads']
if _EVENTLET:
    import eventlet
    eventlet.monkey_patch()

import logging  # noqa: E402
import os  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from unittest import mock  # noqa: E402

from nova_filters import decision_record  # noqa: E402
from nova_filters import log_once  # noqa: E402
from nova_filters import periodic_worker  # noqa: E402
from nova_filters import policy  # noqa: E402
from nova_filters import reassessment  # noqa: E402
from nova_filters import request_assessor  # noqa: E402
from nova_filters import snapshot_client  # noqa: E402
from tests.unit.nova_filters import base  # noqa: E402
from tests.unit.placement import test_delta  # noqa: E402
from tracon_watcher.placement import limits  # noqa: E402
from tracon_watcher.placement import snapshot  # noqa: E402

log = logging.getLogger('eventlet_process')


class _Noted:
    """A lock that notes when somebody finds it taken, and is about to wait for it."""

    def __init__(self, lock, noted):
        self._lock, self._noted = lock, noted

    def __enter__(self):
        if not self._lock.acquire(False):
            self._noted.append(1)
            self._lock.acquire()

    def __exit__(self, *_error):
        self._lock.release()


def contend():
    remembered = reassessment.AssessmentCache()
    at_the_lock = []

    def ready(prepared):
        remembered.prepare(prepared.assessor, limits.NONE, time.time())

    client = snapshot_client.SnapshotClient(
        snapshot_client.AssessmentOptions(), log_once.FaultLog(log), log, ready)
    taken = threading.Thread(target=client.take, args=(test_delta.state(), 'it'), daemon=True)
    # As if the system had stopped the request's thread while it holds the lock.
    lock = remembered._lock
    remembered._lock = _Noted(lock, at_the_lock)
    with lock:
        taken.start()
        end = time.monotonic() + 60.0
        while not at_the_lock and time.monotonic() < end:
            time.sleep(0.01)
    taken.join(60.0)
    print('prepared' if client.current is not None else 'hung',
          'green' if periodic_worker.patched() else 'native', flush=True)


def locks():
    from eventlet import patcher
    from eventlet import semaphore
    from nova import objects
    objects.register_all()
    ident = patcher.original('_thread').get_ident
    requests, natively, taken = ident(), [], []
    acquire, execute = semaphore.Semaphore.acquire, periodic_worker.natively

    def watched(self, *arguments, **more):
        if ident() != requests:
            taken.append(next(frame.filename for frame in reversed(
                traceback.extract_stack()[:-1]) if 'eventlet/' not in frame.filename))
        return acquire(self, *arguments, **more)

    def counted(function, *arguments):
        natively.append(function)
        return execute(function, *arguments)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(
            semaphore.Semaphore, 'acquire', watched), mock.patch.object(
                periodic_worker, 'natively', counted):
        path = os.path.join(folder, 'snapshot.jsonl')
        content = test_delta.state()
        snapshot.write(path, content.cluster)
        judge = request_assessor.RequestAssessor(policy.Options(
            path, mode='weigh', initial_wait_seconds=60.0, pending_directory=folder,
            maximum_age_seconds=1e12), log)
        told = []
        judge._decisions = decision_record.DecisionQueue(
            lambda method, document: told.append(document), judge.faults)
        for _again in range(2):
            states, spec = [base.host_state(name) for name in content.cluster.hosts], \
                base.request_spec()
            judge.weights(judge.passing(states, spec), spec, [0.0])
            judge.reconfigure(policy.Options(path, mode='weigh', confidence=0.9))
            judge._work()
        judge.close()
    assert told
    print(len(natively), *sorted(set(taken)), flush=True)


if __name__ == '__main__':
    locks() if sys.argv[1:] == ['locks'] else contend()
    # A thread that hangs would not let the process end.
    os._exit(0)

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

"""Nova's plugins in a process that runs threads or eventlet, as nova-scheduler's workers do."""

import sys

from nova import monkey_patch


monkey_patch.patch(backend=sys.argv[2])     # before anything else, as Nova does

import logging                                                          # noqa: E402
import threading                                                        # noqa: E402
import time                                                             # noqa: E402

import nova.conf                                                        # noqa: E402
from nova import objects                                                # noqa: E402

from nova_filters import interference_filter                            # noqa: E402
from nova_filters import interference_weigher                           # noqa: E402
from nova_filters import periodic_worker                                     # noqa: E402
from tests.unit.nova_filters import base                                # noqa: E402
from tracon_watcher.conf import nova_filters as conf_module             # noqa: E402

_TICK = 0.01


def configure(url):
    """Set the options as nova.conf would."""
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[])
    conf_module.register_opts(conf)
    for name, value in (('snapshot_source', 'engine'), ('transport_url', url),
                        ('mode', 'enforce'), ('initial_wait_seconds', 30.0),
                        ('engine_check_seconds', 2.0), ('pending_directory', '')):
        conf.set_override(name, value, group='tracon')
    objects.register_all()


def watch(gaps, ended):
    """Tick, as a request's thread might; note by how much each tick comes too late."""
    last = time.monotonic()
    while not ended.is_set():
        time.sleep(_TICK)
        now = time.monotonic()
        gaps.append(now - last - _TICK)
        last = now


def timed(natively, times):
    """Note how long each thing takes that is done in the background."""
    def run(*given):
        start = time.monotonic()
        try:
            return natively(*given)
        finally:
            times.append(time.monotonic() - start)
    return run


def main(url):
    """Judge a request by each snapshot that comes."""
    logging.basicConfig(level=logging.WARNING)
    configure(url)
    times = []
    periodic_worker.natively = timed(periodic_worker.natively, times)
    filter_ = interference_filter.InterferenceFilter()
    weigher = interference_weigher.InterferenceWeigher()
    gaps, ended = [], threading.Event()
    threading.Thread(target=watch, args=(gaps, ended), daemon=True).start()
    judge = filter_._worker.judge()
    seen = 0
    while seen < 2:
        spec = base.request_spec()
        states = [base.host_state('host0'), base.host_state('host1')]
        passing = filter_.filter_all(states, spec)
        weights = weigher._weigh(passing, spec)
        current = judge.snapshots.current
        if current is not None and current.cluster.version > seen:
            seen = current.cluster.version
            print('judged', seen, len(current.cluster.uuids), len(passing), weights, flush=True)
            base.consume(states[0])
        time.sleep(0.05)
    time.sleep(3.0)
    ended.set()
    server = judge.source._subscriber._session._server
    print('executor', server.executor_type, 'eventlet', 'eventlet' in sys.modules,
          'longest', round(max(times), 3), 'held up', round(max(gaps), 3), flush=True)
    judge.close()


if __name__ == '__main__':
    main(sys.argv[1])

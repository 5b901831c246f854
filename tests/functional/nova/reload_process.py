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

"""A service of Nova's with two workers that judge all the time, started as nova-scheduler is."""

import sys

from nova import monkey_patch

monkey_patch.patch(backend='threading')     # unless the environment says otherwise, as in Nova

import os                                                               # noqa: E402
import threading                                                        # noqa: E402
import time                                                             # noqa: E402

import nova.conf                                                        # noqa: E402
from nova import objects                                                # noqa: E402
from nova import service                                                # noqa: E402
from oslo_service import service as oslo_service                        # noqa: E402

from nova_filters import interference_filter                            # noqa: E402
from nova_filters import interference_weigher                           # noqa: E402
from tests.unit.nova_filters import base                                # noqa: E402


class Scheduler(oslo_service.Service):
    """Judges instead of listening for requests; the plugins are made before the fork."""

    def __init__(self):
        super().__init__()
        self.filter = interference_filter.InterferenceFilter()
        self.weigher = interference_weigher.InterferenceWeigher()

    def start(self):
        threading.Thread(target=self.judge, daemon=True).start()

    def judge(self):
        while True:
            spec = base.request_spec()
            states = [base.host_state(name, [f'vm-{name}']) for name in 'ab']
            passing = self.filter.filter_all(states, spec)
            self.weigher._weigh(passing, spec)
            # One write of a short line: the workers share the file.
            os.write(1, '{} {} {}\n'.format(
                os.getpid(), ','.join(state.host for state in passing),
                self.weigher.weight_multiplier(None)).encode())
            time.sleep(0.1)


if __name__ == '__main__':
    nova.conf.CONF(['--config-file', sys.argv[1]], project='nova')
    objects.register_all()
    service.serve(Scheduler(), workers=2)
    service.wait()

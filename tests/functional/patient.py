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

"""Patience with Nova where its own tests have little."""

import time

#: Nova's tests wait 5 to 20 s for each step, which a busy machine exceeds.
SECONDS = 300.0
_WAITS = ('_wait_for_migration_status', '_wait_for_server_allocations',
          '_wait_for_server_parameter', '_wait_for_service_parameter', '_wait_until_deleted')


class Patient:
    """A base class that repeats the waits of Nova's helpers until they succeed."""


def _patiently(name):
    def wait(self, *args, **kwargs):
        end = time.monotonic() + SECONDS
        while True:
            try:
                return getattr(super(Patient, self), name)(*args, **kwargs)
            except self.failureException:
                if time.monotonic() > end:
                    raise
    return wait


for _name in _WAITS:
    setattr(Patient, _name, _patiently(_name))

#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.

"""Tests against Nova, Watcher and libvirt as they are.

Nova decides at its first import whether it runs threads or eventlet, so this is
where it is imported first, whichever test is found first. Threads are its
default; TRACON_TEST_EVENTLET=1 runs the tests under eventlet.
"""

import os

if not os.environ.get('TRACON_TEST_EVENTLET'):
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

import nova.tests.functional  # noqa: E402,F401

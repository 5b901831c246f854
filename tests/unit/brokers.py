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

"""A message broker in memory for each test.

oslo.messaging's fake driver keeps one for the whole process, and empties it whenever a transport
is cleaned up: a thread that outlives its test would lose the messages of the next one.
"""

from unittest import mock

from oslo_messaging._drivers import impl_fake


def of_its_own():
    """Return a patch under which new transports of ``fake://`` share a broker of their own."""
    class Manager(impl_fake.FakeExchangeManager):
        _exchanges = {}

        @classmethod
        def cleanup(cls):
            """Leave the messages of other transports alone."""

    return mock.patch.object(impl_fake, 'FakeExchangeManager', Manager)

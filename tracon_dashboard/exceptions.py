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

"""What may be wrong with an answer of the engine's.

Horizon is told of these when it reads its settings: nothing of Horizon may be imported here, or it
would settle on settings that are not complete yet.
"""


class Unavailable(Exception):
    """The engine does not answer, or refuses; the text says why."""


class NotFound(Exception):
    """The engine knows nothing of that name."""


class Forbidden(Exception):
    """The user may not see it."""

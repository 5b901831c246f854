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

"""Builds what learns models anew."""

from __future__ import annotations

import threadpoolctl

from tracon_watcher.engine import active_models
from tracon_watcher.engine import activity
from tracon_watcher.engine import freshness
from tracon_watcher.engine import leadership
from tracon_watcher.engine import refitting

_MINUTE = 60.0


def activity_of(watched: freshness.Freshness, models: active_models.ActiveModels,
                lead: leadership.Leadership) -> activity.Activity:
    """Return the activity, which is to be started with the engine's others."""
    made = refitting.Refitting(watched, models, lead.term)

    def work() -> None:
        # The matrices are small: threads of BLAS would only wait for each other.
        with threadpoolctl.threadpool_limits(1):
            made.work()

    return activity.Activity('Refitting models', work, _MINUTE)

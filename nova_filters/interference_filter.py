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

"""InterferenceFilter: refuses hosts on which a VM's limit would be breached."""

from nova.scheduler import filters
from nova.scheduler import utils

from nova_filters import worker


class InterferenceFilter(filters.BaseHostFilter):
    """Stands last in ``[filter_scheduler] enabled_filters``: what others refuse is not judged."""

    RUN_ON_REBUILD = False

    def __init__(self):
        self._worker = worker.Worker()

    def filter_all(self, filter_obj_list, spec_obj):
        """Return the hosts that pass, judging all at once.

        The base class asks host by host and lets everything pass on a rebuild; the latter is
        repeated here.
        """
        hosts = list(filter_obj_list)
        if not self.RUN_ON_REBUILD and utils.request_is_rebuild(spec_obj):
            return hosts
        return worker.guarded(lambda: self._worker.judge().passing(hosts, spec_obj), hosts)

    def host_passes(self, host_state, filter_properties):
        """Judge one host alone."""
        return bool(self.filter_all([host_state], filter_properties))

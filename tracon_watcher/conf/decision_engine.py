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

"""Options of the strategy and the scoring engines in Watcher's decision engine."""

from tracon_watcher.conf import nova_filters

GROUP = nova_filters.GROUP

_SHARED = ('snapshot_source', 'snapshot_file', 'transport_url', 'maximum_age_seconds')


def list_opts():
    """Return no options: those in use here are listed where nova-scheduler's are."""
    return []


def register_opts(conf):
    """Register the options that Watcher's plugins share with nova-scheduler's."""
    conf.register_group(GROUP)
    conf.register_opts([option for option in nova_filters.SNAPSHOT if option.name in _SHARED],
                       group=GROUP)

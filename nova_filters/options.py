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

"""The options as plain values."""

from __future__ import annotations

import dataclasses
import math

from tracon_watcher.conf import nova_filters as conf_module
from tracon_watcher.placement import limits as limits_module


@dataclasses.dataclass(frozen=True)
class Options:
    """See :mod:`tracon_watcher.conf.nova_filters` for what each one does."""

    snapshot_file: str
    snapshot_source: str = 'file'
    transport_url: str | None = dataclasses.field(default=None, repr=False)
    engine_check_seconds: float = 30.0
    snapshot_refresh_seconds: float = 5.0
    initial_wait_seconds: float = 2.0
    maximum_age_seconds: float | None = None
    mode: str = 'advise'
    on_all_refused: str = 'least_harm'
    confidence: float = 0.8
    margin: float = 0.05
    limits: limits_module.Limits = limits_module.NONE
    weight_multiplier: float = 40.0
    pending_expiry_seconds: float = 300.0
    pending_directory: str = ''


def read(conf) -> Options:
    """Read the options, registering them first.

    :param conf: Nova's ``CONF``
    :raises ValueError: oslo.config's, for a value that is not allowed
    """
    conf_module.register_opts(conf)
    group = conf.tracon
    values = {field.name: getattr(group, field.name) for field in dataclasses.fields(Options)
              if field.name != 'limits'}
    slowdown, ratio = group.max_slowdown, group.min_iops_ratio
    return Options(limits=limits_module.Limits(math.inf if slowdown is None else slowdown,
                                               0.0 if ratio is None else ratio), **values)

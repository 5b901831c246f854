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

"""Validators of the extra specs ``tracon:class`` and those of limits.

Nova's validators know no floating point type, so the ranges are patterns. Nova applies them from
microversion 2.86 on.
"""

from nova.api.validation.extra_specs import base

from tracon_watcher.placement import limits

# 1 to 1000, and 0.001 to 1, each with decimals; a test compares them with limits.RANGES.
_SLOWDOWN = r'1000(\.0+)?|[1-9][0-9]{0,2}(\.[0-9]+)?'
_RATIO = r'1(\.0+)?|0\.(?!000)[0-9]{3,}|0\.(?!0+$)[0-9]{1,2}'

EXTRA_SPEC_VALIDATORS = [
    base.ExtraSpecValidator(
        name=limits.CLASS,
        description=(
            'Servers of this flavor are background work: they have no limits, what others do to '
            'them counts nothing, and they go first where a server of the foreground is in '
            'breach. Without this key servers are in the foreground.'
        ),
        value={'type': str, 'pattern': limits.BACKGROUND_CLASS},
    ),
    base.ExtraSpecValidator(
        name=limits.MAX_SLOWDOWN,
        description=(
            'The largest predicted slowdown that servers of this flavor tolerate, from 1 to '
            '1000: 1.5 means that a piece of work takes half as long again as without any '
            'neighbour. Hosts on which it would be breached are refused, where the operator '
            'has switched that on.'
        ),
        value={'type': str, 'pattern': _SLOWDOWN},
    ),
    base.ExtraSpecValidator(
        name=limits.MIN_IOPS_RATIO,
        description=(
            'The smallest predicted share of their I/O operations per second without any '
            'neighbour that servers of this flavor tolerate, from 0.001 to 1.'
        ),
        value={'type': str, 'pattern': _RATIO},
    ),
]


def register():
    """Return the validators, as Nova's loader asks for them."""
    return EXTRA_SPEC_VALIDATORS

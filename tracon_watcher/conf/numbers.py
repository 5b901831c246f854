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

"""Options that are numbers: finite, within a range, of a unit."""

from oslo_config import cfg
from oslo_config import types

from tracon_watcher import numerals


_PARSERS = {float: numerals.parse, int: numerals.parse_whole}


class Number(types.Number):
    """A finite number within a range.

    oslo.config's own types let NaN pass every range, and read all that Python itself reads.

    :param kind: ``float`` or ``int``
    :param unit: what is counted, for the documentation and the errors
    :param optional: whether the value may be empty, which is none
    """

    def __init__(self, kind, unit, min, max, optional):
        what = 'whole' if kind is int else 'finite'
        super().__init__(kind, f'{what} number, {unit}', min, max)
        self._unit = unit
        self._optional = optional

    def __call__(self, value):
        text = str(value).strip()
        if not text and self._optional:
            return None
        try:
            return _PARSERS[self.num_type](text, self.min, self.max)
        except numerals.InvalidNumber as error:
            raise ValueError(f'{error} ({self._unit})') from None


class FloatOpt(cfg.FloatOpt):
    """An option that is a finite number; where it has no default, its value may be empty.

    :param unit: what is counted
    """

    kind = float

    def __init__(self, name, unit, *, min, max, default=None, **more):
        super().__init__(name, min, max, default=default, **more)
        self.type = Number(self.kind, unit, min, max, default is None)


class IntOpt(FloatOpt):
    """An option that is a whole number, likewise."""

    kind = int

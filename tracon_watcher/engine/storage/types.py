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

"""Column types: numbers that may be unknown, and long texts."""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql


class Unknown(sa.types.TypeDecorator[float]):
    """A number that may be unknown: NaN here, NULL in the database.

    Infinities, which MariaDB cannot hold, are no measurements either, and count as unknown.
    """

    impl = sa.Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Any) -> float | None:
        return float(value) if value is not None and math.isfinite(value) else None

    def process_result_value(self, value: float | None, dialect: Any) -> float:
        return math.nan if value is None else float(value)


def long_text() -> sa.types.TypeEngine[str]:
    """Return the type of documents: MariaDB's TEXT ends at 64 KiB."""
    return sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql')

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

"""Calibrations: what the estimates of demand and slowdown rest on.

They are documents of :mod:`tracon_watcher.contention.calibration_document`, which do not say for
which hosts they hold: whoever stores one does.
"""

from __future__ import annotations

from typing import Any

from tracon_watcher.contention import calibration_document
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import documents
from tracon_watcher.engine.storage import tables


def calibrations(database: databases.Database) -> documents.Documents:
    """Return the calibrations that a database holds; what they calibrate is the slowdown."""
    return documents.Documents(database, tables.CALIBRATIONS, _check)


def _check(content: Any, source: str) -> tuple[None, str]:
    calibration_document.from_content(content, source)
    return None, 'slowdown'

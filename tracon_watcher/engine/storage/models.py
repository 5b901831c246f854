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

"""Models: documents as :mod:`tracon_watcher.prediction.store` writes them."""

from __future__ import annotations

from typing import Any

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import documents
from tracon_watcher.engine.storage import tables
from tracon_watcher.prediction import store


def models(database: databases.Database) -> documents.Documents:
    """Return the models that a database holds; of two responses each."""
    return documents.Documents(database, tables.MODELS, _check)


def _check(content: Any, source: str) -> tuple[str, str]:
    model = store.from_content(content, source)
    return model.host_type, model.response

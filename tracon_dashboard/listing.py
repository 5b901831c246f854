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

"""What the pages with a table have in common: one page of a list of the engine's."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import tables
from openstack_dashboard.utils import settings as setting_utils

from tracon_dashboard import api


class Table(tables.DataTable):
    """A table of documents.

    :cvar key: of what tells one from another, which is the marker of a page too
    """

    key = 'uuid'

    def get_object_id(self, datum: dict[str, Any]) -> str:
        return datum[self.key]

    def get_object_display(self, datum: dict[str, Any]) -> str:
        return datum.get('name') or datum[self.key]

    def get_marker(self) -> str:
        return self.data[-1][self.key] if self.data else ''


class ListView(tables.DataTableView):
    """A table of one page of a list, with a link to the next.

    :cvar resource: the list's key, and the beginning of its path
    :cvar rest: of its path
    :cvar order: query parameters by which it is sorted
    """

    service = api.ENGINE
    resource = ''
    rest: tuple[str, ...] = ()
    order: dict[str, str] = {}
    template_name = 'tracon_dashboard/list.html'
    _more = False

    def query(self) -> dict[str, str]:
        """Return the query parameters of the list, beside those of a filter."""
        return dict(self.order)

    def has_more_data(self, table: Any) -> bool:
        return self._more

    def get_data(self) -> list[dict[str, Any]]:
        query = self.query()
        if self.table._meta._filter_action is not None:
            field, text = self.table.get_filter_field(), self.table.get_filter_string()
            if field and text:
                query[field] = text
        try:
            found = api.get(self.request, self.resource, *self.rest, service=self.service,
                            limit=setting_utils.get_page_size(self.request),
                            marker=self.request.GET.get(self.table_class._meta.pagination_param),
                            **query)
        except Exception:
            exceptions.handle(self.request, _('The list is not to be had.'))
            return []
        self._more = bool(found.get('links') or found.get('next'))
        return found[self.resource]

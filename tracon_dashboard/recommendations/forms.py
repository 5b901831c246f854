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

from __future__ import annotations

from typing import Any

from django.utils import html
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import messages

from tracon_dashboard import api
from tracon_dashboard.recommendations import plans

_FIELDS = {'number': forms.FloatField, 'integer': forms.IntegerField}
_LIST = _('Several stand on a line each.')


class AuditForm(forms.SelfHandlingForm):
    """The parameters of the strategy, as Watcher tells of them, for one audit."""

    def __init__(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self._strategy: dict[str, Any] = {}
        try:
            self._strategy = api.get(request, 'strategies', plans.STRATEGY, service=api.WATCHER)
        except Exception:
            exceptions.handle(request, _('The parameters of the strategy are not to be had.'))
        self._known = (self._strategy.get('parameters_spec') or {}).get('properties', {})
        for name, schema in sorted(self._known.items()):
            self.fields[name] = _field(name, schema)

    def handle(self, request: Any, data: dict[str, Any]) -> bool:
        given = {}
        for name, schema in self._known.items():
            value = data[name]
            if schema['type'] == 'array':
                value = [one.strip() for one in value.splitlines() if one.strip()]
            if value is not None and value != schema.get('default'):
                given[name] = value
        try:
            made = api.post(request, 'audits', audit_type='ONESHOT', strategy=plans.STRATEGY,
                            goal=self._strategy['goal_name'], parameters=given)
        except Exception:
            exceptions.handle(request, _('The audit cannot be made.'))
            return False
        messages.success(request, _('Audit %s runs. What it recommends is listed here in a '
                                    'moment; reload the page.') % made['uuid'])
        return True


def _field(name: str, schema: dict[str, Any]) -> Any:
    told: dict[str, Any] = {'label': name.replace('_', ' ').capitalize(), 'required': False,
                            # Horizon puts it into an attribute as it stands.
                            'help_text': html.escape(schema.get('description', ''))}
    kind, default = schema['type'], schema.get('default')
    if kind in _FIELDS:
        return _FIELDS[kind](initial=default, min_value=schema.get('minimum'),
                             max_value=schema.get('maximum'), **told)
    if kind == 'boolean':
        return forms.BooleanField(initial=default, **told)
    if kind == 'array':
        told['help_text'] = f'{told["help_text"]} {_LIST}'
        return forms.CharField(initial='\n'.join(default or ()),
                               widget=forms.Textarea(attrs={'rows': 2}), **told)
    return forms.CharField(initial=default, max_length=255, **told)

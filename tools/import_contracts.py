#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.

"""A contract for import-linter: these modules import this, and nothing else."""

import sys

from importlinter import Contract
from importlinter import ContractCheck
from importlinter import fields
from importlinter import output


class OnlyContract(Contract):
    """Direct imports of the sources must begin with one of the allowed names.

    Options: ``source_modules`` (each with all below it), ``allowed`` (modules or
    packages), ``forbidden_stdlib`` (the rest of the standard library is allowed).
    A list of what is forbidden would let every new dependency through.
    """

    type_name = 'only'

    source_modules = fields.SetField(subfield=fields.ModuleField())
    allowed = fields.SetField(subfield=fields.StringField(), required=False)
    forbidden_stdlib = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph, verbose):
        stdlib = sys.stdlib_module_names - set(self.forbidden_stdlib or ())
        allowed = set(self.allowed or ())
        broken = []
        for source in sorted(module.name for module in self.source_modules):
            for importer in sorted({source} | graph.find_descendants(source)):
                for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                    if not (imported.partition('.')[0] in stdlib
                            or any(f'{imported}.'.startswith(f'{name}.') for name in allowed)):
                        lines = [detail['line_number'] for detail in graph.get_import_details(
                            importer=importer, imported=imported)]
                        broken.append((importer, imported, lines))
        return ContractCheck(kept=not broken, metadata={'broken': broken})

    def render_broken_contract(self, check):
        for importer, imported, lines in check.metadata['broken']:
            where = ', '.join(f'l.{line}' for line in lines)
            output.print_error(f'{importer} must not import {imported} ({where})', bold=False)

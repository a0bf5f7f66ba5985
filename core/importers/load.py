"""Turns what a user offers into an `Import` by recognising, grouping and reading it; or only previews it.

Measures that the user leaves out are refused by name where files that are not tables lack them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from pathlib import PurePosixPath

import polars as pl

from core.errors import ClqError, InputError, UnknownNameError
from core.importers.base import ACCEPTED, Detected, Format, Import, LeftOut, Look, Options, merged
from core.importers.formats import FORMATS, PLUGGED
from core.importers.formats.filters import with_permissions
from core.importers.formats.spans.placing import with_brought
from core.importers.naming import named
from core.importers.own_ids import without_own
from core.importers.ranged import as_declared
from core.importers.read.jsons import broken
from core.importers.read.markdown import as_tables, is_page
from core.importers.read.member import HEAD_BYTES, Archive, Member, ReadProgress, first_is_cut, watched
from core.importers.read.source import Offered, opened
from core.importers.read.tabular import PARQUET, READ_ERRORS, beside_rows, kind_of
from core.importers.read.text import SAVE_AS, UTF16, quoted, shown
from core.importers.report import AS_YOU_WISH, FileReport, sentences
from core.importers.runs import chosen_id, collection_name, slug, stripped
from core.importers.split_collections import apart
from core.plugins import blamed

_MEASURES = {"signals": "signal", "answer_scores": "scorer", "aggregates": "measure"}
"""Tables of measures, each with the column that names them."""
_SHOWN = 12
_PICKLES = b"\x02\x03\x04\x05"  # Versions of Python pickles
_UNKNOWN = "This is of no format known here"
_CLUTTER = "a link or a system file"
_AS_GOOD = 0.05  # Difference in confidence within which the user chooses between two formats


def without_measures(imported: Import, names: Iterable[str]) -> Import:
    """Remove measures from an import, and report them as left out if they were counted as taken."""
    frames, reports = dict(imported.frames), imported.reports
    for name in names:
        meant = named(name, name)
        found = False
        for table in _MEASURES.keys() & frames.keys():
            is_it = pl.col(_MEASURES[table]) == shown(name, 80)
            if meant is not None and table == "aggregates":
                is_it |= (pl.col("measure") == meant.measure) & pl.col("k").eq_missing(meant.k)
            rows = frames[table].lazy()
            if rows.filter(is_it).head(1).collect().height:
                found, frames[table] = True, rows.filter(~is_it)
        if found:
            reports = tuple(_moved(report, name) for report in reports)
    return replace(imported, frames=frames, reports=reports)


def _moved(report: FileReport, name: str) -> FileReport:
    wanted = {part for part in report.taken if part.rsplit(".", 1)[-1] == name}
    taken = tuple(part for part in report.taken if part not in wanted)
    return replace(
        report, taken=taken, left_out={**report.left_out, **dict.fromkeys(wanted or {name}, AS_YOU_WISH)}
    )


def refuse_unknown(names: Iterable[str], reports: Iterable[FileReport]) -> None:
    """Refuse names of columns that no file leaves out."""
    reports = tuple(reports)
    done = {part for report in reports for part, why in report.left_out.items() if why == AS_YOU_WISH}
    last = {part.rsplit(".", 1)[-1] for part in done}
    if unknown := sorted(set(names) - done - last):
        there = dict.fromkeys(part for report in reports for part in (*report.taken, *report.left_out))
        problem = f"There is no column or measure {quoted(unknown[0])} that can be left out."
        do = f"There are: {', '.join(shown(part) for part in list(there)[:_SHOWN])}." if there else ""
        raise InputError(problem, where="--without", do=do)


class OpenFormatError(InputError):
    """Files may be of several formats, and none was chosen.

    Attributes:
        files: Name of each file → names of its possible formats.
    """

    def __init__(self, files: Mapping[str, tuple[str, ...]]) -> None:
        name, formats = next(iter(files.items()))
        do = f"Say which (--as '{shown(name)}={formats[0]}')."
        super().__init__(f"This may be {' or '.join(formats)}.", where=name, do=do)
        self.files = files


@dataclass(frozen=True, slots=True)
class _Match:
    """A format and the archive that it will read; `beside` = a file of a folder in another format."""

    format: Format
    archive: Archive
    beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview(Look):
    """Preview of one offered file or folder, for the page."""

    name: str  # File or folder name; untrusted text
    format: str | None  # Name of the recognised (or nearest) format; None if it resembles none
    title: str  # The format's name on screen
    bytes: int  # Stored size
    # Options to choose between, with their values, for example the splits
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""  # Why it cannot be read as it is; empty if it can


def load(
    offered: Sequence[Offered], options: Options | None = None, progress: ReadProgress | None = None
) -> Import:
    """Read everything that was offered together as one import; nothing is written."""
    options = options or Options()
    if not offered:
        raise InputError("Nothing was offered.", do="Name at least one file or folder.")
    with watched(progress), opened(offered, options.limits) as archives:
        matches: list[_Match] = []
        parts: list[Import] = []
        for archive in map(_paged, archives):
            kept = [member for member in archive.members if not {archive.name, member.name} & options.skip]
            wanted = replace(archive, members=tuple(kept))
            accepted, rest = _matches(wanted, options) if kept else ([], {})
            matches += accepted
            unwanted = {member.name: AS_YOU_WISH for member in archive.members if member not in kept}
            parts.append(_unread({**rest, **unwanted, **dict.fromkeys(archive.skipped, _CLUTTER)}))
        if not matches:
            raise InputError("Every file is left out.", do="Leave in at least one.")
        if progress is not None:
            progress.total = sum(member.size for match in matches for member in match.archive.members)
        given = options.collection_id
        best = max(matches, key=lambda match: match.format.names_collection)
        name = given or collection_name(best.archive)
        chosen = chosen_id(name, options.known_collections) if given else slug(name)
        options = replace(options, collection_id=chosen, collection_name=name, collection_given=bool(given))
        parts += [_read(format_, matches, options) for format_ in FORMATS if not format_.needs_documents]
        options = with_brought(options, merged(parts))
        parts += [_read(format_, matches, options) for format_ in FORMATS if format_.needs_documents]
    imported = with_permissions(merged(parts), options)
    imported = apart(without_own(stripped(imported, options.strip), options.own_ids), options)
    refuse_unknown(options.without, imported.reports)
    _refuse_twice(
        [golden_set.golden_set_id for golden_set in imported.golden_sets], "golden set", "--golden-set"
    )
    _refuse_twice([run.run_id for run in imported.runs], "run", "--label")
    return imported


def preview(offered: Sequence[Offered], options: Options | None = None) -> tuple[Preview, ...]:
    """Look at everything that was offered without reading it whole; unreadable files come with a reason.

    Args:
        offered: As in `load`.
        options: As in `load`.
    """
    options = options or Options()
    seen: list[Preview] = []
    for item in offered:
        try:
            with opened([item], options.limits) as archives:
                seen += _previews(_paged(archives[0]), options)
        except ClqError as error:
            name = shown(getattr(item, "name", item))
            seen.append(
                Preview(name=name, format=None, title="", bytes=0, rows=pl.DataFrame(), problem=str(error))
            )
    return tuple(seen)


def _unread(files: Mapping[str, str]) -> Import:
    file_reports = tuple(FileReport(name, "file", (), {name: why}) for name, why in files.items())
    return Import(reports=file_reports, left_out=_left_out(file_reports))


def _left_out(file_reports: Sequence[FileReport]) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(*entry) for entry in sentences(file_reports))


def _paged(archive: Archive) -> Archive:
    """Return a Markdown page of no known format as an archive of its tables; any other file unchanged."""
    if len(archive.members) > 1 or not is_page(archive.members[0]):
        return archive
    known = any(format_.sniff(archive) >= ACCEPTED for format_ in FORMATS if not format_.maps_columns)
    return archive if known else as_tables(archive)


def _matches(archive: Archive, options: Options) -> tuple[list[_Match], dict[str, str]]:
    if len(archive.members) == 1:
        return [_single(archive, options)], {}
    formats = _wanted(options, archive.name)
    sure, whole = max(((format_.sniff(archive), format_) for format_ in formats), key=itemgetter(0))
    mine = whole.mine(archive) if sure >= ACCEPTED else ()
    matches = [_Match(whole, replace(archive, members=mine))] if mine else []
    names, beside = {member.name for member in mine}, bool(mine)
    errors: dict[str, InputError] = {}
    open_: dict[str, tuple[str, ...]] = {}
    for file in (part for part in archive.split() if part.name not in names):
        try:
            match = replace(_single(file, options), beside=beside)
            if beside and match.format.maps_columns and kind_of(file.members[0]) == "json":
                errors[file.name] = InputError(f"JSON beside {whole.title}: offer it by itself.")
            else:
                matches.append(match)
        except OpenFormatError as error:
            open_ |= error.files
        except InputError as error:
            errors[file.name] = error
    if open_ and not beside:  # a run or judgements might be missed
        raise OpenFormatError(open_)
    if not matches:
        raise _nothing(archive, errors)
    errors |= {name: OpenFormatError({name: formats}) for name, formats in open_.items()}
    return matches, {name: _reason(error) for name, error in errors.items()}


def _nothing(archive: Archive, errors: Mapping[str, InputError]) -> InputError:
    """Explain why nothing in a folder or an archive can be read.

    It names what is wrong with a file, or which kinds of files were found.
    """
    known = [error for error in errors.values() if not error.found.startswith(_UNKNOWN)]
    if len(errors) == 1 or known:
        return next(iter(known or errors.values()))
    endings = Counter(PurePosixPath(name).suffix.lower() or "without an ending" for name in errors)
    said = ", ".join(f"{shown(ending, 20)} ({count})" for ending, count in endings.most_common(5))
    problem = f"None of its {len(errors)} files is of a format known here: {said}."
    do = "Offer the folder or the files that hold results; the list of formats says what can be imported."
    return InputError(problem, where=archive.name, do=do)


def _reason(error: InputError) -> str:
    """Explain why a file is left out, as the end of a sentence."""
    return (error.found[:1].lower() + error.found[1:]).rstrip(".")


def _wanted(options: Options, file: str) -> tuple[Format, ...]:
    name = options.formats.get(file, options.format)
    if name is None:
        return FORMATS
    matches = tuple(
        format_ for format_ in FORMATS if format_.name == name or format_.name.startswith(f"{name}-")
    )
    if not matches:
        raise UnknownNameError("format", name, (format_.name for format_ in FORMATS))
    return matches


def _single(archive: Archive, options: Options) -> _Match:
    formats = _wanted(options, archive.name)
    if len(formats) == 1:
        return _Match(formats[0], archive)
    sure = {format_: format_.sniff(archive) for format_ in formats}
    ranked = sorted(formats, key=lambda format_: -sure[format_])
    best, said = ranked[0], options.table_as(archive.name)
    if sure[best] < ACCEPTED:
        mapped = (format_ for format_ in ranked if format_.maps_columns and sure[format_] > 0)
        if (said.columns or said.row) and (table := next(mapped, None)):
            return _Match(table, archive)
        raise _unknown(archive, best, sure[best])
    rivals = tuple(format_.name for format_ in ranked if sure[format_] >= sure[best] - _AS_GOOD)
    if len(rivals) > 1:
        raise OpenFormatError({archive.name: rivals})
    return _Match(best, archive)


def _unknown(archive: Archive, nearest: Format, score: float) -> InputError:
    member = archive.members[0]
    if not member.head.strip():
        return InputError("The file is empty.", where=archive.name)
    if member.head.startswith(UTF16):
        return InputError("The file is UTF-16, not UTF-8.", where=archive.name, do=SAVE_AS)
    if first_is_cut(member):
        found = f"{_UNKNOWN} by its first {HEAD_BYTES:,} bytes, in which its first line does not end."
        return InputError(found, where=archive.name, do="Name the format (--as table, for example).")
    if error := broken(member):
        return error
    if score <= 0:
        do = "The list of formats says what can be imported."
        if member.head.startswith(PARQUET):
            do = "It begins as a Parquet file does, but was cut off or has no column that is known here."
        elif member.head[:1] == b"\x80" and member.head[1:2] in _PICKLES:
            do = "It looks like a Python pickle, which is never opened: it could run code. Write JSON or CSV."
        return InputError(f"{_UNKNOWN}.", where=archive.name, do=do)
    why = nearest.why_not(archive)
    problem = f"{_UNKNOWN}; it comes nearest to {nearest.title}"
    return InputError(f"{problem}{':' if why else '.'}", where=archive.name, do=str(why or ""))


def _read(format_: Format, matches: Sequence[_Match], options: Options) -> Import:
    mine = [match for match in matches if match.format is format_]
    if not mine:
        return Import()
    try:
        return _imported(format_, [match.archive for match in mine], options)
    except InputError as error:
        if not all(match.beside for match in mine):
            if type(error) is InputError and (more := _or_skipped(error, matches)):
                raise more from error
            raise
    # Files beside those that a folder consists of may not be what they seemed; they are left out.
    parts = []
    for match in mine:
        try:
            parts.append(_imported(format_, [match.archive], options))
        except InputError as error:
            parts.append(_unread({match.archive.name: _reason(error)}))
    return merged(parts)


def _or_skipped(error: InputError, matches: Sequence[_Match]) -> InputError | None:
    """Return the error of one of several files, with a hint how to skip it, or None for other errors."""
    names = [member.name for match in matches for member in match.archive.members]
    named = [
        name for name in names if error.where == name or error.where.startswith((f"{name}:", f"{name},"))
    ]
    if len(names) < 2 or not named or "--skip" in error.do:
        return None
    or_else = f"Or leave the file out (--skip '{named[0]}')."
    return InputError(error.found, where=error.where, do=" ".join(filter(None, (error.do, or_else))))


def _imported(format_: Format, archives: Sequence[Archive], options: Options) -> Import:
    try:
        with blamed(format_.name) if format_ in PLUGGED else nullcontext():
            imported = format_.read(archives, options)
        if not format_.in_ranges:
            imported = as_declared(imported, archives, options)
        file_reports = tuple(format_.reports(archives, options))
    except READ_ERRORS as error:
        names = ", ".join(archive.name for archive in archives[:3])
        why = shown(str(error) or "it takes more memory than there is", 200)
        raise InputError(f"It cannot be read as {format_.title}: {why}", where=names) from error
    files = {member.name: member for archive in archives for member in archive.members}
    told = (*imported.reports, *file_reports)
    imported = replace(imported, reports=tuple(_whole(each, files.get(each.file)) for each in told))
    if not format_.maps_columns:
        unwanted = {name for archive in archives for name in options.table_as(archive.name).without}
        imported = without_measures(imported, sorted(unwanted))
    return replace(
        imported,
        left_out=(*_left_out(imported.reports), *imported.left_out),
        detected=tuple(Detected(archive.name, format_.name) for archive in archives),
    )


def _whole(file_report: FileReport, member: Member | None) -> FileReport:
    """Return a report on a table's columns that also names the keys beside its rows."""
    if member is None or file_report.kind != "column":
        return file_report
    named = {*file_report.taken, *file_report.left_out}
    facts = (f"{key} (of the file)" if key in named else key for key in beside_rows(member))
    left_out = {**file_report.left_out, **dict.fromkeys(facts, "stands beside the rows")}
    return replace(file_report, left_out=left_out)


def _refuse_twice(ids: Sequence[str], kind: str, option: str) -> None:
    again, times = next(iter(Counter(ids).most_common(1)), ("", 0))
    if times > 1:
        raise InputError(
            f"Two files make the same {kind} {again!r}.", do=f"Import them one by one ({option})."
        )


def _previews(archive: Archive, options: Options) -> list[Preview]:
    try:
        matches, _ = _matches(archive, options)
    except OpenFormatError as error:
        parts = {part.name: part for part in (archive, *archive.split())}
        return [
            replace(_preview(parts[name], None, options, str(OpenFormatError({name: formats}))),
                    choices={"format": formats})
            for name, formats in error.files.items()
        ]  # fmt: skip
    except ClqError as error:
        sure, nearest = max(((format_.sniff(archive), format_) for format_ in FORMATS), key=itemgetter(0))
        return [_preview(archive, nearest if sure > 0 else None, options, str(error))]
    return [_preview(match.archive, match.format, options, "") for match in matches]


def _preview(archive: Archive, format_: Format | None, options: Options, problem: str) -> Preview:
    looked, choices = Look(pl.DataFrame()), {}
    try:
        if format_ is not None:
            looked, choices = format_.look(archive, options), dict(format_.choices([archive]))
    except (ClqError, *READ_ERRORS) as error:
        problem = problem or shown(error, 500)
    if format_ is not None and looked.rows.is_empty():
        looked = Look(Format.look(format_, archive, options).rows)
    return Preview(
        **{field.name: getattr(looked, field.name) for field in fields(Look)},
        name=archive.name,
        format=format_.name if format_ else None,
        title=format_.title if format_ else "",
        bytes=sum(member.size for member in archive.members),
        choices=choices,
        problem=problem,
    )

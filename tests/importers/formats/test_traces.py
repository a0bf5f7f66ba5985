import io
import json
import sqlite3
from contextlib import closing, suppress
from types import MappingProxyType

import polars as pl
import pytest

from core.errors import InputError
from core.importers.formats.traces import TraceFormat
from core.importers.formats.traces.rows import cell
from tests.importers.helpers import parquet, read, refusal, rows, up, zipped


def document(name: str | None, text: str, score: float | None = None) -> dict[str, object]:
    meta = {"source": "file.md", **({"score": score} if score is not None else {})}
    return {"id": name, "page_content": text, "metadata": meta, "type": "Document"}


LANGSMITH = [
    {"id": "r1", "trace_id": "r1", "parent_run_id": None, "name": "RAG", "run_type": "chain",
     "inputs": {"question": "what is ndcg?"}, "outputs": {"answer": "a measure"}, "error": None,
     "start_time": "2024-05-29T13:46:19.000000", "end_time": "2024-05-29T13:46:21.500000",
     "status": "success", "session_name": "prod", "feedback_stats": {"correctness": {"n": 1, "avg": 0.5}}},
    {"id": "r2", "trace_id": "r1", "parent_run_id": "r1", "name": "VectorStoreRetriever",
     "run_type": "retriever", "inputs": {"query": "ndcg"},
     "outputs": {"documents": [document("a", "alpha", 0.9), document("b", "beta", 0.4)]},
     "start_time": "2024-05-29T13:46:19.100000", "end_time": "2024-05-29T13:46:19.350000",
     "extra": {"metadata": {"embedding_model": "e-3", "api_key": "sk-1234567890123"}}},
    {"id": "r3", "trace_id": "r1", "parent_run_id": "r1", "name": "ChatOpenAI", "run_type": "llm",
     "inputs": {"messages": [[{"role": "user", "content": "x"}]]},
     "outputs": {"generations": [[{"text": "a measure"}]]}, "prompt_tokens": 120, "completion_tokens": 8,
     "start_time": "2024-05-29T13:46:19.400000", "end_time": "2024-05-29T13:46:21.400000",
     "extra": {"metadata": {"ls_model_name": "gpt-x"}}},
    {"id": "f1", "trace_id": "f1", "parent_run_id": None, "name": "RAG", "run_type": "chain",
     "inputs": {"question": "broken"}, "outputs": None, "error": "Timeout", "status": "error",
     "start_time": "2024-05-29T13:47:00", "end_time": None, "session_name": "prod"},
]  # fmt: skip
BEGAN = ("asked_at", 1716990379.0)  # 2024-05-29T13:46:19 UTC, as seconds
PHOENIX = [
    {"context.trace_id": "t1", "context.span_id": "s1", "parent_id": None, "name": "query",
     "span_kind": "CHAIN", "start_time": "2024-05-29T13:46:19.000000+00:00",
     "end_time": "2024-05-29T13:46:21.500000+00:00",
     "status_code": "OK", "attributes.input.value": "what is ndcg?", "attributes.output.value": "a measure"},
    {"context.trace_id": "t1", "context.span_id": "s2", "parent_id": "s1", "name": "retrieve",
     "span_kind": "RETRIEVER", "start_time": "2024-05-29T13:46:19.100000+00:00",
     "end_time": "2024-05-29T13:46:19.350000+00:00", "status_code": "OK", "attributes.input.value": "ndcg",
     "attributes.retrieval.documents": [
         {"document.id": "a", "document.content": "alpha", "document.score": 0.9},
         {"document.id": "b", "document.content": "beta", "document.score": 0.4}]},
    {"context.trace_id": "t1", "context.span_id": "s3", "parent_id": "s1", "name": "llm", "span_kind": "LLM",
     "start_time": "2024-05-29T13:46:19.400000+00:00", "end_time": "2024-05-29T13:46:21.400000+00:00",
     "status_code": "OK", "attributes.llm.model_name": "gpt-x", "attributes.llm.token_count.prompt": 120,
     "attributes.llm.token_count.completion": 8, "attributes.output.value": "a measure"},
    {"context.trace_id": "t2", "context.span_id": "s9", "parent_id": None, "name": "query",
     "span_kind": "CHAIN", "status_code": "ERROR", "attributes.input.value": "broken"},
]  # fmt: skip
LANGFUSE = [
    {"id": "o2", "traceId": "t1", "type": "SPAN", "name": "similarity_search", "parentObservationId": "o1",
     "startTime": "2024-05-29T13:46:19.100Z", "endTime": "2024-05-29T13:46:19.350Z", "level": "DEFAULT",
     "input": "ndcg", "output": [
         {"id": "a", "text": "alpha", "score": 0.9}, {"id": "b", "text": "beta", "score": 0.4}]},
    {"id": "o1", "traceId": "t1", "type": "SPAN", "name": "rag", "parentObservationId": None,
     "startTime": "2024-05-29T13:46:19.000Z", "endTime": "2024-05-29T13:46:21.500Z", "level": "DEFAULT",
     "input": {"question": "what is ndcg?"}, "output": "a measure"},
    {"id": "o3", "traceId": "t1", "type": "GENERATION", "name": "llm", "parentObservationId": "o1",
     "startTime": "2024-05-29T13:46:19.400Z", "endTime": "2024-05-29T13:46:21.400Z", "level": "DEFAULT",
     "model": "gpt-x", "usageDetails": {"input": 120, "output": 8, "total": 128}, "input": [],
     "output": {"role": "assistant", "content": "a measure"}},
    {"id": "o9", "traceId": "t2", "type": "SPAN", "name": "rag", "parentObservationId": None,
     "startTime": "2024-05-29T13:46:19.000Z", "endTime": None, "level": "ERROR", "input": "broken"},
]  # fmt: skip
SOURCES = {"langsmith": LANGSMITH, "openinference": PHOENIX, "langfuse": LANGFUSE}


def as_lines(entries: list[dict[str, object]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in entries)


def as_csv(entries: list[dict[str, object]], told=json.dumps) -> str:
    keys = list(dict.fromkeys(key for each in entries for key in each))
    cells = [
        {key: told(value) if isinstance(value := each.get(key), dict | list) else value for key in keys}
        for each in entries
    ]
    buffer = io.BytesIO()
    pl.DataFrame(cells, infer_schema_length=None).write_csv(buffer)
    return buffer.getvalue().decode()


def as_parquet(entries: list[dict[str, object]]) -> bytes:
    keys = list(dict.fromkeys(key for each in entries for key in each))
    wide = [{key: each.get(key) for key in keys} for each in entries]
    return parquet(pl.DataFrame(wide, infer_schema_length=None, strict=False))


def nested(entry: dict[str, object]) -> dict[str, object]:
    """The attributes of a span as Phoenix keeps them: maps within maps."""
    found: dict[str, object] = {}
    for key, value in entry.items():
        if key.startswith("attributes."):
            *above, last = key.removeprefix("attributes.").split(".")
            holder = found
            for step in above:
                holder = holder.setdefault(step, {})
            holder[last] = (
                [{"document": {name.partition(".")[2]: cell for name, cell in one.items()}} for one in value]
                if last == "documents"
                else value
            )
    return found


def when(stamp: str | None) -> str | None:
    return stamp and stamp.replace("T", " ").removesuffix("+00:00")


def as_database(entries: list[dict[str, object]]) -> bytes:
    """What a server of Phoenix keeps of these spans."""
    traces = list(dict.fromkeys(entry["context.trace_id"] for entry in entries))
    keys = ("context.span_id", "parent_id", "name", "span_kind", "start_time", "end_time", "status_code")
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(
            "CREATE TABLE projects (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE traces (id INTEGER PRIMARY KEY, project_rowid INTEGER, trace_id TEXT);"
            "CREATE TABLE spans (id INTEGER PRIMARY KEY, trace_rowid INTEGER, span_id TEXT, parent_id TEXT,"
            " name TEXT, span_kind TEXT, start_time TIMESTAMP, end_time TIMESTAMP, status_code TEXT,"
            " attributes TEXT, events TEXT);"
            "INSERT INTO projects VALUES (1, 'default');"
        )
        made.executemany(
            "INSERT INTO traces VALUES (?, 1, ?)", [(place, name) for place, name in enumerate(traces)]
        )
        made.executemany(
            "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]')",
            [
                (
                    place,
                    traces.index(entry["context.trace_id"]),
                    *(when(entry.get(key)) if "time" in key else entry.get(key) for key in keys),
                    json.dumps(nested(entry)),
                )
                for place, entry in enumerate(entries)
            ],
        )  # fmt: skip
        made.commit()
        return made.serialize()


def test_the_database_of_phoenix_tells_the_same():
    made = read(up("phoenix.db", as_database(PHOENIX)), collection_id="c")
    assert made.detected[0].format == "phoenix"
    check(made)
    (report,) = made.reports
    assert "spans.events" in report.left_out
    assert "spans.attributes" in report.taken


def test_a_database_of_phoenix_whose_attributes_are_no_json_is_refused():
    broken = as_database(PHOENIX).replace(b'{"input"', b'["input"')
    assert "phoenix.db, span" in refusal(up("phoenix.db", broken))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE traces SET id = 0", "phoenix.db, traces.id: The id 0 stands"),
        ("INSERT INTO projects VALUES (1, 'again')", "phoenix.db, projects.id: The id 1 stands 2 times."),
        ("UPDATE spans SET span_id = 's1'", "phoenix.db, spans.span_id: The id s1 stands"),
    ],
)
def test_a_database_of_phoenix_in_which_an_id_stands_again_is_refused(change: str, said: str):
    with closing(sqlite3.connect(":memory:")) as made:
        made.deserialize(as_database(PHOENIX))
        for table in ("projects", "traces", "spans"):  # without their keys, as another tool may write them
            made.execute(f"CREATE TABLE other AS SELECT * FROM {table}")  # noqa: S608
            made.execute(f"DROP TABLE {table}")
            made.execute(f"ALTER TABLE other RENAME TO {table}")
        made.execute(change)
        made.commit()
        assert said in refusal(up("phoenix.db", made.serialize()))


FORMS = {
    "list": lambda entries: json.dumps(entries, indent=2),
    "lines": as_lines,
    "wrapped": lambda entries: json.dumps({"data": entries, "next_cursor": None}),
    "csv": as_csv,
    "repr": lambda entries: as_csv(entries, repr),
}


def check(made) -> None:
    """Every tool tells the same story."""
    assert rows(made, "rankings").select("stage", "rank", "passage_id", "score").rows() == [
        ("final", 1, "a", 0.9), ("final", 2, "b", 0.4)
    ]  # fmt: skip
    assert rows(made, "queries")["text"].to_list() == ["what is ndcg?"]
    assert dict(rows(made, "passages").select("passage_id", "text").rows()) == {"a": "alpha", "b": "beta"}
    times = {stage: round(ms, 3) for stage, ms in rows(made, "timings").select("stage", "ms").rows()}
    assert times == {"retrieve": 250.0, "generate": 2000.0}
    assert set(rows(made, "usage").select("stage", "item", "unit", "amount").rows()) == {
        ("generate", "gpt-x", "input_tokens", 120.0), ("generate", "gpt-x", "output_tokens", 8.0)
    }  # fmt: skip
    told = ("text", "reader", "k", "input_tokens", "output_tokens", "ms")
    (answer,) = rows(made, "answers").select(told).rows()
    assert (*answer[:-1], round(answer[-1], 3)) == ("a measure", "gpt-x", 2, 120, 8, 2000.0)
    assert made.runs[0].stack.spec["generator"] == "gpt-x"
    assert any((each.count, each.reason) == (1, "traces that ended with an error") for each in made.left_out)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tool", SOURCES)
def test_each_tool_in_each_form(tool, form):
    made = read(up("export", FORMS[form](SOURCES[tool])), collection_id="c")
    assert made.detected[0].format == tool
    check(made)


@pytest.mark.parametrize("tool", ["openinference", "langfuse"])
def test_parquet(tool):
    entries = SOURCES[tool]
    if tool == "langfuse":  # inputs and outputs are texts there
        told = [{key: json.dumps(value) if key in ("input", "output", "usageDetails") else value
                 for key, value in each.items()} for each in entries]  # fmt: skip
        entries = told
    check(read(up("export.parquet", as_parquet(entries)), collection_id="c"))


def test_runs_within_runs_and_feedback():
    root = {**LANGSMITH[0], "child_runs": [{key: value for key, value in each.items() if key != "trace_id"}
                                           for each in LANGSMITH[1:3]]}  # fmt: skip
    made = read(up("export.json", json.dumps([root, LANGSMITH[3]])), collection_id="c")
    check(made)
    assert sorted(rows(made, "signals").select("signal", "value").rows()) == [BEGAN, ("correctness", 0.5)]
    assert made.runs[0].stack.spec["embedder"] == "e-3"
    assert "sk-1234" not in str(made.runs[0].manifest)


def test_the_order_of_runs_names_their_parents():
    ordered = []
    for each in LANGSMITH:
        order = "20240529T134619000000Zr1"
        order += f".20240529T134619100000Z{each['id']}" if each["parent_run_id"] else ""
        plain = {key: value for key, value in each.items() if key != "parent_run_id"}
        ordered.append({**plain, "dotted_order": order if each["trace_id"] == "r1" else None})
    check(read(up("x.jsonl", as_lines(ordered)), collection_id="c"))


def test_attributes_by_dots_and_nested():
    dotted = {key: value for key, value in PHOENIX[1].items() if key != "attributes.retrieval.documents"}
    for place, name in enumerate("ab"):
        base = f"attributes.retrieval.documents.{place}.document"
        dotted |= {f"{base}.id": name, f"{base}.content": {"a": "alpha", "b": "beta"}[name],
                   f"{base}.score": (0.9, 0.4)[place]}  # fmt: skip
    check(read(up("x.jsonl", as_lines([PHOENIX[0], dotted, *PHOENIX[2:]])), collection_id="c"))
    nested = [
        {**{key: value for key, value in each.items() if "." not in key},
         "context": {"trace_id": each["context.trace_id"], "span_id": each["context.span_id"]},
         "attributes": {key.removeprefix("attributes."): value for key, value in each.items()
                        if key.startswith("attributes.")}}
        for each in PHOENIX
    ]  # fmt: skip
    check(read(up("x.json", json.dumps({"data": nested})), collection_id="c"))


def test_the_list_of_a_reranker_counts():
    reranked = {
        **PHOENIX[1], "context.span_id": "s4", "span_kind": "RERANKER",
        "attributes.retrieval.documents": None,
        "attributes.reranker.output_documents": [{"document.id": "b", "document.score": 0.99}],
    }  # fmt: skip
    made = read(up("x.jsonl", as_lines([*PHOENIX, reranked])), collection_id="c")
    assert rows(made, "rankings").select("passage_id", "score").rows() == [("b", 0.99)]
    assert "rerank" in set(rows(made, "timings")["stage"])
    assert any("before its reranker" in each.reason for each in made.left_out)


def test_several_retrievers_make_no_ranking_unless_one_holds_the_others():
    second = {**LANGSMITH[1], "id": "r5"}
    made = read(up("x.json", json.dumps([*LANGSMITH, second])), collection_id="c")
    assert "rankings" not in made.taken
    assert any("several retriever steps" in each.reason for each in made.left_out)
    inner = {
        **LANGSMITH[1],
        "id": "r5",
        "parent_run_id": "r2",
        "outputs": {"documents": [document("z", "zeta")]},
    }
    check(read(up("x.json", json.dumps([*LANGSMITH, inner])), collection_id="c"))


def test_traces_of_langfuse_hold_their_observations():
    trace = {"id": "t1", "timestamp": "2024-05-29T13:46:19.000Z", "latency": 2.5, "sessionId": None,
             "input": {"question": "what is ndcg?"}, "output": "a measure",
             "scores": [{"name": "helpful", "value": 1}, {"name": "note", "value": None, "stringValue": "x"}],
             "observations": LANGFUSE[:3]}  # fmt: skip
    failed = {**trace, "id": "t2", "level": "ERROR", "observations": []}
    made = read(up("traces.json", json.dumps([trace, failed])), collection_id="c")
    check(made)
    assert sorted(rows(made, "signals").select("signal", "value").rows()) == [BEGAN, ("helpful", 1.0)]
    both = zipped({"traces.json": json.dumps([{**trace, "observations": ["o1"]}, failed]),
                   "observations.jsonl": as_lines(LANGFUSE)})  # fmt: skip
    check(read(up("x.zip", both), collection_id="c"))


@pytest.mark.parametrize(
    ("tool", "key", "moment"),
    [
        ("langfuse", "completionStartTime", "2024-05-29T13:46:19.900Z"),
        ("langsmith", "first_token_time", None),
    ],
)
def test_the_first_token_of_an_answer(tool: str, key: str, moment: str | None):
    model = {"langfuse": ("type", "GENERATION"), "langsmith": ("run_type", "llm")}[tool]
    entries = [dict(each) for each in SOURCES[tool]]
    (said,) = [each for each in entries if each.get(model[0]) == model[1]]
    said[key] = moment or said["start_time"]
    made = read(up("x.json", json.dumps(entries)), collection_id="c")
    (first,) = rows(made, "answers")["first_token_ms"]
    assert first == pytest.approx(500.0 if moment else 0.0)


def test_projects_are_runs_and_a_question_may_come_again():
    other = [{**each, "id": f"x{each['id']}", "trace_id": "xr1", "session_name": "new",
              "parent_run_id": each["parent_run_id"] and "xr1"} for each in LANGSMITH[:3]]  # fmt: skip
    again = [{**each, "id": f"y{each['id']}", "trace_id": "yr1",
              "parent_run_id": each["parent_run_id"] and "yr1"} for each in LANGSMITH[:3]]  # fmt: skip
    for each in (*other, *again, *LANGSMITH):
        each.setdefault("session_name", "new" if each["trace_id"] == "xr1" else "prod")
    made = read(up("x.json", json.dumps([*LANGSMITH, *other, *again])), collection_id="c")
    assert sorted(run.label for run in made.runs) == ["new", "prod"]
    assert rows(made, "rankings").height == 6
    assert any("1 questions were asked before" in note for note in made.notes)


@pytest.mark.parametrize(
    ("tool", "counts"),
    [
        ("langsmith", {"prompt_tokens": 0, "completion_tokens": 0}),
        (
            "openinference",
            {"attributes.llm.token_count.prompt": 0, "attributes.llm.token_count.completion": 0},
        ),
        ("langfuse", {"usageDetails": {"input": 0, "output": 0}}),
    ],
)
def test_zero_tokens_are_not_counted_ones(tool, counts):
    silent = [{**entry, **(counts if counts.keys() <= entry.keys() else {})} for entry in SOURCES[tool]]
    made = read(up("x.json", json.dumps(silent)), collection_id="c")
    assert "usage" not in made.taken


class OtherTool(TraceFormat):
    name, title, source = "other", "Other tool", "Other tool"
    recognised = "rows with spanType"
    paths = MappingProxyType({
        "id": "spanId", "parent": "above", "trace": "meta.trace", "kind": "spanType", "question": "said.in",
        "answer": "said.out", "documents": "said.hits", "input_tokens": "in/read", "output_tokens": "out",
    })  # fmt: skip

    def is_mine(self, keys):
        return "spanType" in keys


def test_a_tool_is_a_table_of_paths():
    tool = OtherTool()
    rows = [
        {"span_id": 1, "meta": {"trace": "t"}, "spanType": "llm", "read": 5, "said": {"out": "yes"}},
        {"spanId": 2, "meta.trace": "t", "spantype": "Retriever", "said": {"in": "q", "hits": ["text"]}},
    ]
    model, retriever = (span for row in rows for span in tool.spans(row, "x"))
    assert (model.id, model.kind, model.answer, model.tokens) == ("1", "model", "yes", {"input_tokens": 5})
    assert (retriever.id, retriever.trace, retriever.question) == ("2", "t", "q")
    assert [document.text for document in retriever.documents] == ["text"]
    assert {"spanId", "span_id", "spanid", "said", "in", "read", "above", "meta"} <= tool.keys.keys()
    with pytest.raises(InputError, match="The span has no id"):
        list(tool.spans({"spanId": 3}, "x"))


def test_observations_in_a_column_are_taken():
    trace = {"id": "t1", "timestamp": "2024-05-29T13:46:19.000Z", "sessionId": "s", "input": "q",
             "output": "a", "observations": LANGFUSE[:3]}  # fmt: skip
    (file_report,) = read(up("traces.csv", as_csv([trace])), collection_id="c").reports
    assert "observations" in file_report.taken
    assert set(file_report.left_out) == {"sessionId"}


@pytest.mark.parametrize(
    ("tool", "change", "message"),
    [
        ("langsmith", {"id": None}, "The run has no id"),
        ("openinference", {"context.span_id": 1.5}, "The span has no id"),
        ("langfuse", {"id": []}, "The observation has no id"),
    ],
)
def test_refused(tool, change, message):
    entries = SOURCES[tool]
    broken = as_lines([*entries, {**entries[0], **change}])
    assert message in refusal(up("x.jsonl", broken), collection_id="c")
    assert "No trace holds a question" in refusal(up("x.jsonl", as_lines(entries[-1:])), format=tool)


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e300, [[]], {"a": {}}])
def test_odd_values_anywhere(value):
    for tool, entries in SOURCES.items():
        for key in entries[1]:
            odd = [{**entries[0]}, {**entries[1], key: value}, *entries[2:]]
            with suppress(InputError):
                assert read(up("x.jsonl", as_lines(odd)), collection_id="c", format=tool).taken


@pytest.mark.parametrize(
    "text",
    [
        "[__import__('os').getcwd()]",
        "{'a': open('/etc/passwd')}",
        "[" * 100_000 + "]" * 100_000,
        "{1:" * 90_000 + "1" + "}" * 90_000,
        "[" + "-" * 500_000 + "1]",
        "[" + "1+" * 250_000 + "1]",
        "[" + "9" * 900_000 + "]",
    ],
    ids=["call", "open", "lists", "maps", "signs", "sums", "digits"],
)
def test_a_cell_is_never_run_nor_too_deep(text):
    assert cell(text) is text


@pytest.mark.parametrize("tool", ["langsmith", "langfuse"])
def test_inputs_and_outputs_as_texts_of_json(tool):
    """Langfuse's interface gives them so, whatever was recorded."""
    keys = ("input", "output", "inputs", "outputs")
    entries = [
        {key: json.dumps(value) if key in keys and isinstance(value, dict | list) else value
         for key, value in each.items()} for each in SOURCES[tool]
    ]  # fmt: skip
    check(read(up("x.json", json.dumps({"data": entries, "meta": {"cursor": None}})), collection_id="c"))


def test_an_answer_that_is_json_of_its_own_stays_one():
    answer = '{"verdict": true, "why": [1, 2]}'
    root = {**LANGFUSE[1], "output": answer}
    made = read(up("x.json", json.dumps([root, LANGFUSE[0], LANGFUSE[2]])), collection_id="c")
    assert rows(made, "answers")["text"].to_list() == [answer]


def test_runs_before_they_are_sent():
    """Documents as LangChain serialises them, tokens where the model's answer has them."""
    found = [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"],
         "kwargs": document(name, text, score)}
        for name, text, score in (("a", "alpha", 0.9), ("b", "beta", 0.4))
    ]  # fmt: skip
    told = {"ls_embedding_model": "e-3", "ls_vector_store_provider": "FAISS"}
    retriever = {**LANGSMITH[1], "outputs": {"documents": found}, "extra": {"metadata": told}}
    usage = {"input_tokens": 120, "output_tokens": 8, "total_tokens": 128}
    for outputs in (
        {"usage_metadata": usage},
        {"llm_output": {"token_usage": {"prompt_tokens": 120, "completion_tokens": 8}}},
    ):
        model = {**LANGSMITH[2], "outputs": {**LANGSMITH[2]["outputs"], **outputs}}
        del model["prompt_tokens"], model["completion_tokens"]
        made = read(
            up("x.jsonl", as_lines([LANGSMITH[0], retriever, model, LANGSMITH[3]])), collection_id="c"
        )
        check(made)
        assert made.runs[0].stack.spec["embedder"] == "e-3"


def test_an_index_that_is_a_column_too():
    """A frame of Phoenix has the ids of spans as index and as column, and pandas writes both."""
    table = as_csv(PHOENIX, repr).splitlines()
    ids = ["context.span_id", *(str(each["context.span_id"]) for each in PHOENIX)]
    doubled = "\n".join(f"{name},{line}" for name, line in zip(ids, table, strict=True))
    check(read(up("spans.csv", doubled), collection_id="c"))
    other = doubled.replace("\ns2,", "\ns7,")
    assert "column `context.span_id`: The column occurs twice" in refusal(up("spans.csv", other))


OFFERS = {
    "langsmith": ("langsmith", as_lines(LANGSMITH).encode()),
    "phoenix": ("phoenix", as_database(PHOENIX)),
    "openinference": ("openinference", json.dumps(PHOENIX).encode()),
    "openinference-csv": ("openinference", as_csv(PHOENIX, repr).encode()),
    "langfuse": ("langfuse", as_csv(LANGFUSE).encode()),
}

"""The explorer as a web application: pages, views, and the answers of commands as JSON."""

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import cast

import anyio.to_thread
from plotly.offline import get_plotlyjs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from topicscope import pages, training
from topicscope.explorer import results_rooms, theory_room
from topicscope.explorer.runs import LiveRoom, PaperRoom, Runs, paper_view, settings_of
from topicscope.explorer.workspace import FORMS, MEDIA, Place, View, Workspace, identity
from topicscope.ground import InputError, files, flat, one_line, parse_json, refuse_if, shown

OWN = Path(__file__).parent
ASKER = "x-topicscope"  # header by which a page asks, and is refused

# By name: the title, and what it is for
ROOMS = {
    "theory": (
        "Theory",
        "Change a setting, and see how the optimum, the best attention and the times of learning change.",
    ),
    "live": ("Live", "Start training and watch the two stages happen."),
    "models": ("Models", "Explore a probe: layers, heads, topics, and the documents behind the numbers."),
    "maps": ("Maps", "See any measure of a sweep over any two of its axes."),
    "time": ("Time", "See how a run or a language model changes from step to step."),
    "paper": ("Paper", "The paper's claims, with figures, rules and verdicts."),
}

# By room: the command that writes what it shows
FILLED_BY = {
    "models": "topicscope probe MODEL --corpus TEXT --out {folder}",
    "maps": "topicscope sweep GRID.yaml --out {folder}",
    "time": "topicscope train --snapshots log --out {folder}",
}

# By room: what a newcomer sees there
LOOKING_AT = {
    "theory": "One artificial world (topics, documents and masking), and what theory says about it. W* is the value "
    "matrix that predicts masked words best as long as attention is uniform; its limit for long documents and Theorem "
    "2 are shown beside it. Modes are directions that learn at their own rate, each with its half-time. The curves "
    "show when value grows, then key and query. The last map is the loss over attention once the value matrix is "
    "learnt, with its minimum and the interval in which the theorem places it. Move a slider or type a number; the "
    "page's address holds the setting.",
    "live": "The small transformer while it learns. The loss falls towards its floors (the losses that no model can "
    "beat). Norms say how large each matrix has become: in the paper the value matrix rises first (stage 1), key and "
    "query later (stage 2); stages are shaded as soon as they can be recognised, and thin curves are what theory "
    "predicts. Below, the value matrix and the scores of attention, words ordered by topic: blocks along the diagonal "
    "mean that topics are learnt. Each run has its own process and writes its own folder; closing this page or the "
    "server does not stop it.",
    "models": "A probe asks whether a language model keeps words of one topic together: in its embeddings, in its "
    "hidden states, in its attention. Each answer has controls, which say whether chance, word frequency or "
    "co-occurrence could explain it. Click a head in the map of layers by heads to see it in the documents; click a "
    "topic to read its words; click a word of a document to see which words it attends to.",
    "maps": "Each cell is one run of a sweep, or the mean of runs that differ only in settings that are not shown. "
    "Choose which measure the colours show and which settings run to the right and upwards. Click a cell to see its "
    "curves.",
    "time": "The slider goes through the steps of training. Points are words, placed by what the model has learnt "
    "about them. The axes are those of the last step and do not change, so you can see words of one topic come "
    "together. Contrast: the mean of a measure for words of one topic minus that for words of different topics.",
    "paper": "Each claim of the paper, measured again. A rule that was fixed beforehand decides whether the claim is "
    "reproduced; 'sizes differ' means that the pattern is the same but the numbers are not. You can run claims that "
    "the folder lacks from here.",
}

# Of a run: the setting's name, what it is, and what it may be where it is one of a few words
RUN_SETTINGS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("topic_model.topics", "T, topics", ()),
    ("topic_model.words_per_topic", "v, words per topic", ()),
    ("documents.kind", "prior", tuple(sorted(theory_room.OFFERED))),
    ("documents.topics_per_document", "tau, topics per document", ()),
    ("documents.length", "words per document, or infinite", ()),
    ("model.embedding", "embedding", ("one-hot", "trained")),
    ("model.key", "key", ("trained", "zero")),
    ("model.query", "query", ("trained", "zero")),
    ("model.value", "value", ("trained", "identity", "blocks", "diagonal")),
    ("model.init_scale", "initial scale", ()),
    ("objective.loss", "loss", ("cross-entropy", "squared", "squared-mean")),
    ("objective.l2", "L2", ()),
    ("optimizer.name", "optimiser", tuple(training.OPTIMISERS)),
    ("optimizer.lr", "learning rate", ()),
    ("optimizer.eps", "epsilon of Adam", ()),
    ("steps", "steps", ()),
    ("batch_size", "documents per step", ()),
    ("seed", "seed", ()),
)

# What the start page offers: a title, what it is, and its address
FIRST_THINGS = [
    (
        "Change an assumption",
        "See what theory says when topics overlap or documents are short, without running anything.",
        "/theory?topics=5&words_per_topic=4&topics_per_document=2&overlap=0.25",
    ),
    (
        "Watch two stages happen",
        "Train the small transformer for less than a minute, and see value settle before attention: press Start.",
        "/live?preset=two+stages",
    ),
    (
        "Measure a claim of the paper",
        "Each claim has its figure, its rule and its verdict; the quickest take seconds.",
        "/paper",
    ),
]

# By name: what is to be seen, and the settings
PRESETS: dict[str, tuple[str, dict[str, object]]] = {
    "two stages": (
        "Value, then key and query: SGD in a small world, where theory predicts both (less than a minute).",
        {
            "topic_model": {"topics": 5, "words_per_topic": 4},
            "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
            "model": {"init_scale": 0.01, "prediction_bias": "none"},
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": 4.0},
            "steps": 10_000,
            "evaluate_every": 2000,
            "data": {"dev_documents": 500},
        },
    ),
    "Figure 4": (
        "Norms of key, query and value against steps: the setting closest to the paper's curves.",
        {
            "model": {
                "embedding": "trained",
                "head": "untied",
                "dim": 12,
                "init_scale": 0.004,
                "key_bias": "trained",
                "query_bias": "trained",
                "value_bias": "trained",
            },
            "objective": {"loss": "squared-mean"},
            "optimizer": {"name": "adam", "lr": 0.001},
            "steps": 1000,
        },
    ),
    "Figure 2": (
        "The value matrix under uniform attention: blocks of topics.",
        {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared", "l2": 1e-4}, "steps": 2000},
    ),
    "Theorem 2": (
        "Uniform attention and infinite documents: the value matrix converges to the theorem's optimum.",
        {
            "documents": {"kind": "fixed", "topics_per_document": 3, "length": "infinite"},
            "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.001},
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": 5.0},
            "steps": 3000,
        },
    ),
    "everything trained": ("The paper's run of Section 6.1: one-hot words, cross entropy, Adam.", {"steps": 2000}),
}

# What a command of `topicscope theory` prints with --json: its name, its options
Answer = Callable[[str, Mapping[str, str]], object]

Handler = Callable[[Request], Awaitable[Response]]


def answering(work: Callable[[Request], object]) -> Handler:
    """A handler whose work is done in a thread, beside which the server goes on answering. Text is HTML, data JSON."""

    async def handler(request: Request) -> Response:
        answer = await anyio.to_thread.run_sync(work, request)
        if isinstance(answer, Response):
            return answer
        return HTMLResponse(answer) if isinstance(answer, str) else JSONResponse(answer)

    return handler


def acting(work: Callable[[Mapping[str, object]], object]) -> Handler:
    """A handler of what a page sends. Only JSON is taken, which a form of another site cannot send."""

    async def handler(request: Request) -> Response:
        refuse_if(request.headers.get("content-type") != "application/json", "expected application/json")
        body = parse_json(await request.body(), "the request")
        return JSONResponse(await anyio.to_thread.run_sync(work, body if isinstance(body, dict) else {}))

    return handler


def plain_query(request: Request) -> dict[str, str]:
    return {name: text for name, text in request.query_params.items() if name != "token"}


def whole_number(text: str | None) -> int | None:
    refuse_if(text and (not text.isdecimal() or len(text) > 12), "expected a whole number")
    return int(text) if text else None


def attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


class Explorer:
    def __init__(self, workspace: Workspace, answer: Answer, *, read_only: bool = False) -> None:
        self.workspace, self.answer = workspace, answer
        self.runs = Runs(workspace, read_only=read_only)
        self.live, self.paper = LiveRoom(self.runs), PaperRoom(self.runs)
        self.templates = pages.environment(OWN)

    def end(self) -> None:
        self.live.ending = True

    def routes(self) -> list[Route | Mount]:
        answers: dict[str, Callable[[Request], object]] = {
            "/": partial(self.page, "start"),
            **{f"/{room}": partial(self.page, room) for room in ROOMS},
            "/plotly.js": lambda _: Response(
                get_plotlyjs(), media_type="text/javascript", headers={"cache-control": "max-age=86400"}
            ),
            "/api/folders": self.folders,
            "/api/question": lambda _: theory_room.Question().as_dict(),  # what the controls say at first
            "/api/theory/{name}": lambda request: self.answer(request.path_params["name"], plain_query(request)),
            "/api/view/theory/{part}": theory_part,
            "/api/maps/{id}": self.map_fragment,
            "/api/maps/{id}/curves": self.map_curves,
            "/api/maps/{id}/predicted": lambda request: results_rooms.prediction(self.place(request)).as_dict(),
            "/api/presets": presets,
            "/api/live/{id}/step/{step:int}": lambda request: self.live.matrices_at(
                self.place(request), request.path_params["step"]
            ),
            "/api/keep/{kind}": self.kept_page,
            "/api/keep/{kind}/{figure}.{format}": self.kept_figure,
            "/api/models/{id}": self.model,
            "/api/models/{id}/word": self.word,
            "/api/time/{id}": self.steps,
            "/api/time/{id}/step/{step:int}": lambda request: results_rooms.time_view(
                self.place(request), request.path_params["step"]
            ).fragment(),
            "/api/paper": lambda request: self.paper.claims(self.place_or_none(request.query_params.get("id", ""))),
            "/api/paper/run/{id}": lambda request: self.paper.state(request.path_params["id"]),
        }
        return [
            Route("/api/runs", acting(self.start_run), methods=["POST"]),
            Route("/api/runs/{id}/{action}", answering(self.change_run), methods=["POST"]),
            Route("/api/paper/run", acting(self.run_claim), methods=["POST"]),
            Route("/api/live/events", self.live_events),
            *(Route(path, answering(work)) for path, work in answers.items()),
            Mount("/static", StaticFiles(directory=pages.STATIC)),
            Mount("/explorer", StaticFiles(directory=OWN / "static")),
        ]

    def place(self, request: Request) -> Place:
        return self.workspace.find(request.path_params["id"])

    def place_or_none(self, identity: str) -> Place | None:
        return self.workspace.find(identity) if identity else None

    def page(self, room: str, _: Request) -> str:
        return self.templates.get_template("room.html.jinja").render(
            room=room,
            rooms=ROOMS,
            controls=theory_room.CONTROLS,
            parts=theory_room.PARTS,
            limits=theory_room.limits(),
            things=FIRST_THINGS,
            style_marks=style_marks(),
            settings=RUN_SETTINGS,
            defaults=flat(training.RunConfig().as_dict()),
            read_only=self.runs.read_only,
            looking_at=LOOKING_AT.get(room, ""),
            folders=[shown(folder) for folder in self.workspace.roots],
            command=FILLED_BY.get(room, "").format(folder=shown(shlex.quote(str(self.workspace.home / "NAME")))),
        )

    def folders(self, _: Request) -> list[dict[str, object]]:
        return [place.as_dict() | {"state": self.runs.state_of(place)} for place in self.workspace.places()]

    def map_fragment(self, request: Request) -> str:
        sweep = results_rooms.sweep_of(self.place(request))
        return pages.map_html(pages.point_map(sweep), results_rooms.chosen(sweep, plain_query(request)))

    def map_curves(self, request: Request) -> dict[str, dict[str, str]]:
        asked = request.query_params.get("rows", "").split(",")
        rows = [number for text in asked if (number := whole_number(text)) is not None]
        sweep = results_rooms.sweep_of(self.place(request))
        return pages.curves_of_rows(pages.point_map(sweep), sweep.curves_of, rows)

    def start_run(self, body: Mapping[str, object]) -> dict[str, str]:
        settings, name, more = body.get("settings"), body.get("name", ""), body.get("more", "")
        if not isinstance(settings, dict) or not isinstance(name, str) or not isinstance(more, str):
            raise InputError("expected settings and a name")
        self.runs.check_allowed()
        folder = self.runs.start(settings | settings_of(more), name)
        self.runs.wait_until_there(folder, 5.0)
        return {"id": identity(folder), "name": folder.name}

    def change_run(self, request: Request) -> dict[str, str]:
        place, action = self.place(request), request.path_params["action"]
        asked = {"pause": training.ask_to_pause, "stop": training.ask_to_stop}
        actions = {name: partial(self.runs.ask, end) for name, end in asked.items()} | {"resume": self.runs.resume}
        refuse_if(action not in actions, f"expected one of: {', '.join(actions)}")
        actions[action](place)
        return {"id": place.id}

    async def live_events(self, request: Request) -> Response:
        runs = dict.fromkeys(request.query_params.getlist("id"))
        return StreamingResponse(self.live.events(runs), media_type="text/event-stream")

    def model(self, request: Request) -> dict[str, object]:
        query, place = request.query_params, self.place(request)
        view = results_rooms.models_view(place, whole_number(query.get("model")))
        html = view.fragment("beside-" if "beside" in query else "")
        return {"html": html, "intro": view.intro, "models": results_rooms.model_names(place)}

    def word(self, request: Request) -> dict[str, object]:
        word, model = request.query_params.get("word", ""), whole_number(request.query_params.get("model"))
        refuse_if(not word.strip(), "type a word to search for")
        return results_rooms.topics_of_word(self.place(request), word, model)

    def steps(self, request: Request) -> dict[str, object]:
        saved = results_rooms.saved_steps(self.place(request))
        return {"steps": saved.steps, "note": saved.note}

    def run_claim(self, body: Mapping[str, object]) -> dict[str, str]:
        name, folder = body.get("name"), body.get("id", "")
        if not isinstance(name, str) or not isinstance(folder, str):
            raise InputError("expected the name of a claim, and a folder or none")
        return self.paper.run(name, self.place_or_none(folder))

    def kept_page(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        return HTMLResponse(self.view(kind, plain_query(request)).page(), headers=attached(f"topicscope-{kind}.html"))

    def kept_figure(self, request: Request) -> Response:
        kind, figure, form = (request.path_params[name] for name in ("kind", "figure", "format"))
        refuse_if(form not in FORMS, f"figures are kept as {', '.join(FORMS)}")
        name, content = self.view(kind, plain_query(request)).file(figure, form)
        return Response(content, media_type=MEDIA[name.rpartition(".")[2]], headers=attached(name))

    def view(self, kind: str, query: Mapping[str, str]) -> View:
        step, folder = query.get("step"), query.get("id", "")
        views: dict[str, Callable[[], View]] = {
            "theory": lambda: theory_room.whole_view(theory_room.question(query)),
            "maps": lambda: results_rooms.map_view(self.workspace.find(folder), query),
            "models": lambda: results_rooms.models_view(self.workspace.find(folder), whole_number(query.get("model"))),
            "time": lambda: results_rooms.time_view(self.workspace.find(folder), whole_number(step)),
            "paper": lambda: paper_view(self.workspace.find(folder)),
            "live": lambda: self.live.kept(self.workspace.find(folder), whole_number(step)),
        }
        refuse_if(kind not in views, f"no such view; expected {', '.join(views)}")
        return views[kind]()


def theory_part(request: Request) -> str:
    part, parts = request.path_params["part"], theory_room.PARTS
    refuse_if(part not in parts, f"no such part of this page; expected one of: {', '.join(parts)}")
    return theory_room.part_view(part, theory_room.question(plain_query(request))).fragment()


def presets(request: Request) -> dict[str, dict[str, object]]:
    given: dict[str, tuple[str, dict[str, object]]] = dict(PRESETS)
    if asked := plain_query(request):
        given["from theory"] = ("The setting of the theory page.", theory_room.question(asked).run)
    return {name: {"what": what, "settings": flat(settings)} for name, (what, settings) in given.items()}


@cache
def style_marks() -> list[str]:
    """Ids of the style elements that plotly would make for maps of the world, which are not drawn here."""
    return re.findall(r'getElementById\("([0-9a-f]{64})"\)', get_plotlyjs())


async def refused(request: Request, error: Exception) -> Response:
    """Bad input: one line, as a command would say it. A page gets it with status 200 and a header that says so, since
    browsers write every 400 to the console: a damaged folder is ordinary use.
    """
    of_page = request.headers.get(ASKER) == "page"
    return JSONResponse({"error": str(error)}, 200 if of_page else 400, {ASKER: "refused"} if of_page else {})


async def barred(_: Request, error: Exception) -> Response:
    """What the system does not let be read or written: a disk that is full, a folder that has just gone."""
    system = cast("OSError", error)
    where = f" ({system.filename})" if system.filename else ""
    advice = "; make room, then try again" if system.errno in files.FULL else ""
    return JSONResponse({"error": f"{one_line(system)}{where}{advice}"}, 500)


async def missing(_: Request, _error: Exception) -> Response:
    return PlainTextResponse("Not here.", 404)


async def failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": f"this is a bug in topicscope: {type(error).__name__}: {error}"}, 500)


def application(explorer: Explorer) -> Starlette:
    handlers = {InputError: refused, OSError: barred, Exception: failed, 404: missing}
    return Starlette(routes=explorer.routes(), exception_handlers=handlers)

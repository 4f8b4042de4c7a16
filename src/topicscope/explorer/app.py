"""The explorer as a web application: pages, views, and the answers of commands as JSON."""

import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from topicscope import pages, training
from topicscope.explorer import maps_room, models_room, theory_room, time_room
from topicscope.explorer.folder_views import read_again
from topicscope.explorer.live_room import LiveRoom
from topicscope.explorer.paper_room import paper_view
from topicscope.explorer.presets import PRESETS
from topicscope.explorer.requests import in_thread, json_body, plain_query, whole_number
from topicscope.explorer.results_rooms import ResultsRooms
from topicscope.explorer.rooms import CONTROLS, FILLED_BY, LOOKING_AT, ROOMS, RUN_SETTINGS, first_things
from topicscope.explorer.runs import Runs, settings_of
from topicscope.explorer.views import FORMS, MEDIA, View
from topicscope.explorer.workspace import Place, Workspace, identity
from topicscope.ground import InputError, files, flat, one_line, refuse, shown

OWN = Path(__file__).parent
ASKER = "x-topicscope"  # header by which a page asks, and is refused

FOLDER_VIEWS: dict[str, Callable[[Place, Mapping[str, str]], View]] = {
    "models": lambda place, query: models_room.models_view(place, whole_number(query.get("model"))),
    "time": lambda place, query: time_room.time_view(place, whole_number(query.get("step"))),
    "paper": lambda place, _: paper_view(place),
}
"""Views of one folder, which can be kept: by room, from the folder and what else the query says."""

Answer = Callable[[str, Mapping[str, str]], Any]
"""What a command of `topicscope theory` prints with --json: its name, its options."""


class Explorer:
    """What the requests of one server share."""

    def __init__(self, workspace: Workspace, answer: Answer, *, read_only: bool = False) -> None:
        self.workspace, self.answer = workspace, answer
        self.runs = Runs(workspace, read_only=read_only)
        self.live = LiveRoom(self.runs)
        self.folder_views = FOLDER_VIEWS | {
            "live": lambda place, query: self.live.kept(place, whole_number(query.get("step")))
        }
        self.templates = pages.environment(OWN)

    def end(self) -> None:
        """Ends the streams. Runs go on."""
        self.live.ending = True

    def routes(self) -> list[Route | Mount]:
        shared = StaticFiles(directory=pages.STATIC)
        return [
            Route("/", self.page("start")),
            *(Route(f"/{room}", self.page(room)) for room in ROOMS),
            Route("/plotly.js", plotly_js),
            Route("/api/folders", self.folders),
            Route("/api/question", self.question),
            Route("/api/theory/{name}", self.theory_answer),
            Route("/api/view/theory/{part}", self.theory_part),
            Route("/api/maps/{id}", self.map_fragment),
            Route("/api/maps/{id}/curves", self.map_curves),
            Route("/api/maps/{id}/predicted", self.map_predicted),
            Route("/api/presets", self.presets),
            Route("/api/runs", self.start_run, methods=["POST"]),
            Route("/api/runs/{id}/{action}", self.change_run, methods=["POST"]),
            Route("/api/live/events", self.live_events),
            Route("/api/live/{id}/step/{step:int}", self.live_step),
            Route("/api/keep/{kind}", self.kept_page),
            Route("/api/keep/{kind}/{figure}.{format}", self.kept_figure),
            *ResultsRooms(self.runs).routes(),
            Mount("/static", shared),
            Mount("/explorer", StaticFiles(directory=OWN / "static")),
        ]

    def page(self, room: str) -> Callable[[Request], Any]:
        """The page of a room; what it shows comes with the requests of its script."""

        async def answer(request: Request) -> Response:
            html = self.templates.get_template("room.html.jinja").render(
                room=room,
                rooms=ROOMS,
                controls=CONTROLS,
                parts=theory_room.PARTS,
                limits=theory_room.limits(),
                things=first_things(),
                style_marks=style_marks(),
                settings=RUN_SETTINGS,
                defaults=flat(training.RunConfig().as_dict()),
                read_only=self.runs.read_only,
                looking_at=LOOKING_AT.get(room, ""),
                folders=[shown(folder) for folder in self.workspace.roots],
                command=FILLED_BY.get(room, "").format(folder=shown(shlex.quote(str(self.workspace.home / "NAME")))),
            )
            return HTMLResponse(html)

        return answer

    async def folders(self, _: Request) -> Response:
        places = await in_thread(self.workspace.places)
        return JSONResponse([place.as_dict() | {"state": self.runs.state_of(place)} for place in places])

    async def question(self, _: Request) -> Response:
        """What the controls of theory say at first."""
        return JSONResponse(theory_room.Question().as_dict())

    async def theory_answer(self, request: Request) -> Response:
        """The JSON of the command of the same name."""
        query = plain_query(request)
        return JSONResponse(await in_thread(partial(self.answer, request.path_params["name"], query)))

    async def theory_part(self, request: Request) -> Response:
        part = request.path_params["part"]
        if part not in theory_room.PARTS:
            raise InputError(f"no such part of this page; expected one of: {', '.join(theory_room.PARTS)}")
        asked = theory_room.question(plain_query(request))
        return HTMLResponse(await in_thread(lambda: theory_room.part_view(part, asked).fragment()))

    async def map_fragment(self, request: Request) -> Response:
        """All points of a sweep, without their curves, and what the query has chosen of them."""
        sweep = await in_thread(partial(self.sweep, request.path_params["id"]))
        chosen = maps_room.chosen(sweep, plain_query(request))
        return HTMLResponse(await in_thread(lambda: pages.map_html(pages.point_map(sweep), chosen)))

    async def map_curves(self, request: Request) -> Response:
        """The curves of some points, by their numbers."""
        asked = map(whole_number, plain_query(request).get("rows", "").split(","))
        rows = [number for number in asked if number is not None]

        def answer() -> dict[str, dict[str, str]]:
            sweep = self.sweep(request.path_params["id"])
            return pages.curves_of_rows(pages.point_map(sweep), sweep.curves_of, rows)

        return JSONResponse(await in_thread(answer))

    async def map_predicted(self, request: Request) -> Response:
        """What is predicted for the points, as far as it is worked out."""
        place = await in_thread(partial(self.workspace.find, request.path_params["id"]))
        return JSONResponse(await in_thread(lambda: maps_room.prediction(place).as_dict()))

    def sweep(self, folder: str) -> Any:
        place = self.workspace.find(folder)
        refuse((place.kind != "sweep", f"{place.name} holds no sweep"))
        return read_again(place)

    async def presets(self, request: Request) -> Response:
        """Settings by the paper's names; and those of a question of theory, where the query has one."""
        given = {name: {"what": what, "settings": flat(settings)} for name, (what, settings) in PRESETS.items()}
        if asked := plain_query(request):
            settings = flat(theory_room.question(asked).run)
            given["from theory"] = {"what": "The setting of the theory page.", "settings": settings}
        return JSONResponse(given)

    async def start_run(self, request: Request) -> Response:
        body = await json_body(request)
        settings, name, more = body.get("settings"), body.get("name", ""), body.get("more", "")
        if not isinstance(settings, dict) or not isinstance(name, str) or not isinstance(more, str):
            raise InputError("expected settings and a name")
        self.runs.check_allowed()
        folder = await in_thread(lambda: self.runs.start(settings | settings_of(more), name))
        await in_thread(partial(self.runs.wait_until_there, folder, 5.0))
        return JSONResponse({"id": identity(folder), "name": folder.name})

    async def change_run(self, request: Request) -> Response:
        place = await in_thread(partial(self.workspace.find, request.path_params["id"]))
        actions = {"pause": self.runs.pause, "stop": self.runs.stop, "resume": self.runs.resume}
        action = actions.get(request.path_params["action"])
        if action is None:
            raise InputError(f"expected one of: {', '.join(actions)}")
        await in_thread(partial(action, place))
        return JSONResponse({"id": place.id})

    async def live_events(self, request: Request) -> Response:
        runs = list(dict.fromkeys(request.query_params.getlist("id")))
        return StreamingResponse(self.live.events(runs), media_type="text/event-stream")

    async def live_step(self, request: Request) -> Response:
        run, step = (request.path_params[name] for name in ("id", "step"))
        return HTMLResponse(await in_thread(lambda: self.live.at_step(self.workspace.find(run), step).fragment()))

    async def kept_page(self, request: Request) -> Response:
        """The view as one file to keep."""
        kind = request.path_params["kind"]
        view = await in_thread(partial(self.view, kind, plain_query(request)))
        headers = {"content-disposition": f'attachment; filename="topicscope-{kind}.html"'}
        return HTMLResponse(await in_thread(view.page), headers=headers)

    async def kept_figure(self, request: Request) -> Response:
        kind, figure, form = (request.path_params[name] for name in ("kind", "figure", "format"))
        if form not in FORMS:
            raise InputError(f"figures are kept as {', '.join(FORMS)}")
        view = await in_thread(partial(self.view, kind, plain_query(request)))
        name, content = await in_thread(partial(view.file, figure, form))
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=MEDIA[name.rpartition(".")[2]], headers=headers)

    def view(self, kind: str, query: Mapping[str, str]) -> View:
        if kind == "theory":
            return theory_room.whole_view(theory_room.question(query))
        if kind == "maps":
            return maps_room.map_view(self.workspace, query)
        if kind not in self.folder_views:
            raise InputError(f"no such view; expected theory, maps, {', '.join(self.folder_views)}")
        return self.folder_views[kind](self.workspace.find(query.get("id", "")), query)


@cache
def style_marks() -> list[str]:
    """Ids of the style elements that plotly would make for maps of the world, which are not drawn here."""
    return re.findall(r'getElementById\("([0-9a-f]{64})"\)', get_plotlyjs())


async def plotly_js(_: Request) -> Response:
    """The library that draws, as the plotly package brings it. A browser may keep it for a day."""
    return Response(get_plotlyjs(), media_type="text/javascript", headers={"cache-control": "max-age=86400"})


async def refused(request: Request, error: Exception) -> Response:
    """Bad input: one line, as a command would say it. A page gets it with status 200 and a header that says so, since
    browsers write every 400 to the console: a damaged folder is ordinary use.
    """
    if request.headers.get(ASKER) == "page":
        return JSONResponse({"error": str(error)}, headers={ASKER: "refused"})
    return JSONResponse({"error": str(error)}, 400)


async def barred(_: Request, error: Exception) -> Response:
    """What the system does not let be read or written: a disk that is full, a folder that has just gone."""
    assert isinstance(error, OSError)
    where = f" ({error.filename})" if error.filename else ""
    advice = "; make room, then try again" if error.errno in files.FULL else ""
    return JSONResponse({"error": f"{one_line(error)}{where}{advice}"}, 500)


async def failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": f"this is a bug in topicscope: {type(error).__name__}: {error}"}, 500)


def application(explorer: Explorer) -> Starlette:
    missing: Any = lambda *_: PlainTextResponse("Not here.", 404)  # noqa: E731
    handlers: Any = {InputError: refused, OSError: barred, Exception: failed, 404: missing}
    return Starlette(routes=explorer.routes(), exception_handlers=handlers)

"""What the rooms of models, time and paper answer."""

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from topicscope.explorer import models_room, time_room
from topicscope.explorer.paper_room import PaperRoom
from topicscope.explorer.requests import in_thread, json_body, plain_query, whole_number
from topicscope.explorer.runs import Runs
from topicscope.explorer.workspace import Place
from topicscope.ground import InputError, refuse


class ResultsRooms:
    """Their handlers; each finds a folder by its id."""

    def __init__(self, runs: Runs) -> None:
        self.workspace, self.paper = runs.workspace, PaperRoom(runs)

    def routes(self) -> list[Route]:
        return [
            Route("/api/models/{id}", self.model),
            Route("/api/models/{id}/word", self.word),
            Route("/api/time/{id}", self.steps),
            Route("/api/time/{id}/step/{step:int}", self.moment),
            Route("/api/paper", self.claims),
            Route("/api/paper/run", self.run_claim, methods=["POST"]),
            Route("/api/paper/run/{id}", self.run_state),
        ]

    def found(self, request: Request) -> Place:
        return self.workspace.find(request.path_params["id"])

    async def model(self, request: Request) -> Response:
        """A folder's sections; of a probe also its models, and of one of them alone."""
        query = plain_query(request)

        def answer() -> dict[str, Any]:
            place = self.found(request)
            view = models_room.models_view(place, whole_number(query.get("model")))
            html = view.fragment("beside-" if "beside" in query else "")
            return {"html": html, "intro": view.intro, "models": models_room.model_names(place)}

        return JSONResponse(await in_thread(answer))

    async def word(self, request: Request) -> Response:
        query = plain_query(request)
        word, model = query.get("word", ""), whole_number(query.get("model"))
        refuse((not word.strip(), "type a word to search for"))
        return JSONResponse(await in_thread(lambda: models_room.topics_of_word(self.found(request), word, model)))

    async def steps(self, request: Request) -> Response:
        course = await in_thread(lambda: time_room.course(self.found(request)))
        return JSONResponse({"steps": course.steps, "note": course.note})

    async def moment(self, request: Request) -> Response:
        step = request.path_params["step"]
        return HTMLResponse(await in_thread(lambda: time_room.time_view(self.found(request), step).fragment()))

    async def claims(self, request: Request) -> Response:
        identity = plain_query(request).get("id", "")
        return JSONResponse(
            await in_thread(lambda: self.paper.claims(self.workspace.find(identity) if identity else None))
        )

    async def run_claim(self, request: Request) -> Response:
        body = await json_body(request)
        name, identity = body.get("name"), body.get("id", "")
        if not isinstance(name, str) or not isinstance(identity, str):
            raise InputError("expected the name of a claim, and a folder or none")
        place = await in_thread(partial(self.workspace.find, identity)) if identity else None
        return JSONResponse(await in_thread(partial(self.paper.run, name, place)))

    async def run_state(self, request: Request) -> Response:
        return JSONResponse(await in_thread(partial(self.paper.state, request.path_params["id"])))

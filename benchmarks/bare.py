"""The peer of the service: a FastAPI endpoint that parses the same body and does nothing."""

from typing import Any

from fastapi import FastAPI, Request

app = FastAPI()


@app.post("/samples")
async def samples(request: Request) -> dict[str, Any]:
    """Parse and answer."""
    body = await request.json()
    return {"learned": 1, "numbers": len(body["x"])}


@app.get("/readyz")
async def readyz() -> dict[str, str]:
    """Ready at once."""
    return {"status": "ready"}

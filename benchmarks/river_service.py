"""River behind FastAPI: what one writes when a stream learner is to be a service.

    uvicorn benchmarks.river_service:app

Each sample is predicted, then learned; nothing is written to disk.
"""

from typing import Any

from fastapi import FastAPI, Request
from river import feature_extraction, linear_model, optim

COMPONENTS, GAMMA, RATE, SEED = 512, 1.0, 0.01, 0

app = FastAPI()
model = feature_extraction.RBFSampler(
    gamma=GAMMA, n_components=COMPONENTS, seed=SEED
) | linear_model.LogisticRegression(optimizer=optim.SGD(RATE))


@app.post("/learn")
async def learn(request: Request) -> dict[str, Any]:
    """Predict and learn the samples, in order."""
    body = await request.json()
    predicted = []
    for row, label in zip(body["x"], body["y"], strict=True):
        x = dict(enumerate(row))
        predicted.append(int(model.predict_one(x)))
        model.learn_one(x, bool(label))
    return {"results": {"prediction": predicted}}


@app.get("/readyz")
async def readyz() -> dict[str, str]:
    """Ready at once."""
    return {"status": "ready"}

"""As a user of Opacus writes it: DP-SGD on a linear layer, by its tutorials.

It has no default settings. These were chosen as a careful user would, once for all data sets, on a quarter
of the *training* records of MNIST and Adult that was held out for it; the privacy that this costs is not
counted, to its favour. Clipping at 1 is that of its tutorials; the model starts at zero, which needs no luck.
About 3,000 records a step beat 750 of MNIST and 12,000 of Adult, and 20 epochs were as good as 40; the best
step size grew with epsilon, from 0.5 at 0.5 to about 3 at 3.

Where speed is asked, the noise is given, to its favour: finding it takes seconds. A full batch is one tensor,
not collected from a data set record by record.
"""

import torch
from opacus import PrivacyEngine
from opacus.accountants import PRVAccountant
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH, MOMENTUM = 20, 4000, 0.9


def classify(X, y, classes, epsilon, delta, seed):
    torch.manual_seed(seed)
    data = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    model = torch.nn.Linear(X.shape[1], len(classes))
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    engine = PrivacyEngine()
    private, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=epsilon, momentum=MOMENTUM),
        data_loader=DataLoader(data, batch_size=min(BATCH, len(X) // 2)),
        target_epsilon=epsilon,
        target_delta=delta,
        epochs=EPOCHS,
        max_grad_norm=1.0,
    )
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(private(inputs), labels).backward()
            optimizer.step()

    def predict(X):
        with torch.no_grad():
            return model(torch.tensor(X, dtype=torch.float32)).argmax(dim=1).numpy()

    return predict, (engine.get_epsilon(delta), delta)


def speed(X, y, classes, rate, rounds, mode, seed):
    torch.manual_seed(seed)
    inputs, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    model, loss = torch.nn.Linear(X.shape[1], len(classes)), torch.nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        criterion=loss,
        data_loader=DataLoader(TensorDataset(inputs, labels), batch_size=round(rate * len(X))),
        noise_multiplier=10.0,
        max_grad_norm=1.0,
        poisson_sampling=rate < 1,
        grad_sample_mode=mode,
    )
    private, optimizer, *other, loader = made
    loss = other[0] if other else loss
    for _ in range(round(rounds * rate)):
        for x, labels_of_x in [(inputs, labels)] if rate == 1 else loader:
            optimizer.zero_grad()
            loss(private(x), labels_of_x).backward()
            optimizer.step()


def price_sampled(sigma, rate, times, delta):
    accountant = PRVAccountant()
    accountant.history = [(sigma, rate, times)]
    return accountant.get_epsilon(delta)

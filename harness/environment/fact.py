"""The type of what is known about a machine."""

Fact = str | int | float | bool | None
Facts = dict[str, Fact]

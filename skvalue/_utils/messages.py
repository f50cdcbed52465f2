"""Messages of errors and warnings that know which parameters they name."""


class Message(str):
    """What is wrong with a parameter, and what can be passed, as one text.

    It is a string, in the words of Python. Programs in which parameters have other
    names, such as the command line, write it by its fields, with `in_words`.

    Parameters
    ----------
    parameter : str
        Name of the parameter. The text begins with it, unless there is a `subject`.
    problem : str
        The rule and what was passed, such as "must be above 0. Got -1.".
    advice : str, default=""
        A sentence on what can be passed, with a ``{}`` for each of the settings.
    settings : sequence of tuple of (str, object), default=()
        Parameters of the advice and their values; an ellipsis is any value.
    subject : str, default=None
        How the text begins, if not with the parameter; "" is the problem.
    alias : str, default=None
        What the text calls the parameter, if not by its name alone.

    Examples
    --------
    >>> from skvalue._utils.messages import Message
    >>> settings = [("dates", "dmy"), ("dates", "mdy")]
    >>> text = Message(
    ...     "dates", "can be 3 or 4.", "Pass {} or {}.", settings, subject="'d'"
    ... )
    >>> print(text)
    'd' can be 3 or 4. Pass dates='dmy' or dates='mdy'.
    >>> text.parameter
    'dates'
    """

    def __new__(
        cls, parameter, problem, advice="", settings=(), subject=None, alias=None
    ):
        parameter = str(parameter)  # it may be the path of a file
        start = (alias or parameter) if subject is None else subject
        ending = advice.format(*(_in_python(*setting) for setting in settings))
        message = super().__new__(cls, joined(start, problem, ending))
        message.parameter = parameter
        message.problem = problem
        message.advice = advice
        message.settings = tuple(settings)
        message.subject = subject
        message.alias = alias
        return message

    def __getnewargs__(self):
        return (
            self.parameter,
            self.problem,
            self.advice,
            self.settings,
            self.subject,
            self.alias,
        )

    def in_words(self, name_of, setting_of):
        """The text with other names; without the advice if one of them has none.

        name_of : function of the parameter
        setting_of : function of a parameter and its value, which may return None
        """
        start = name_of(self.parameter) if self.subject is None else self.subject
        settings = [setting_of(*setting) for setting in self.settings]
        if None in settings:
            return joined(start, self.problem)
        return joined(start, self.problem, self.advice.format(*settings))


def joined(*texts):
    """Texts in one line, those that are empty left out."""
    return " ".join(text for text in texts if text)


def _in_python(name, value):
    """A parameter and its value as an argument; an ellipsis is any value."""
    return f"{name}=" if value is ... else f"{name}={value!r}"


def message_of_file(error):
    """The file of an error of the system, and what is wrong; "" for other errors.

    >>> message_of_file(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv could not be used: No such file or directory.'
    """
    if not isinstance(error, OSError) or error.filename is None or not error.strerror:
        return ""
    return f"{error.filename} could not be used: {error.strerror}."

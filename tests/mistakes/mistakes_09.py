"""Checkpoint 09: what learners get wrong, and what is right though it is not ours."""

from __future__ import annotations

from course.authoring.mistakes import Alternative, Mistake

REDUCER = [
    Mistake(
        lab="9.1",
        name="takes every event for one of the active run",
        why="A late event of run 1 writes into the state of run 2.",
        replace=[("if event.run_id != state.active_run_id:", "if state.active_run_id is None:")],
        red="test_a_late_event_of_run_1_changes_nothing_once_run_2_is_active",
    ),
    Mistake(
        lab="9.1",
        name="lets run_end through, whichever run it ends",
        why="A late run_end of run 1 makes an agent look idle whose run 2 is active.",
        replace=[
            (
                "if event.run_id != state.active_run_id:",
                "if event.run_id != state.active_run_id and not isinstance(event, RunEndEvent):",
            )
        ],
        red="test_a_late_event_of_run_1_changes_nothing_once_run_2_is_active",
    ),
    Mistake(
        lab="9.1",
        name="keeps the last text delta alone",
        why="A screen shows the last word of the answer and not the answer.",
        replace=[("streaming_text=state.streaming_text + event.text", "streaming_text=event.text")],
        red="test_the_events_of_a_run_take_the_state_from_idle_to_running_and_back",
    ),
    Mistake(
        lab="9.1",
        name="leaves the streamed text when the whole message is there",
        why="A screen shows the answer twice, and the next one is appended to it.",
        replace=[('streaming_text="", pending_call_ids=pending', "pending_call_ids=pending")],
    ),
    Mistake(
        lab="9.1",
        name="forgets that a skipped call has its result",
        why="After a cancel a call seems to run for ever.",
        replace=[("isinstance(event, ToolEndEvent | ToolSkippedEvent)", "isinstance(event, ToolEndEvent)")],
    ),
    Mistake(
        lab="9.1",
        name="forgets how the last run ended when the next one starts",
        why="Nobody can tell any more that run 1 failed.",
        replace=[
            ('"running", event.messages, event.run_id, state.last_status', '"running", event.messages, event.run_id')
        ],
    ),
    Mistake(
        lab="9.1",
        name="moves the messages at turn_end too",
        why="The state's messages are promised to move at run_start and run_end; a screen would draw a turn twice.",
        replace=[
            (
                "if isinstance(event, RunEndEvent):",
                """
                if isinstance(event, TurnEndEvent):
                    return msgspec.structs.replace(state, messages=event.messages)
                if isinstance(event, RunEndEvent):
                """,
            )
        ],
    ),
    Mistake(
        lab="9.1",
        name="changes the state that it was given",
        why="Whoever holds an older state sees it change under their eyes.",
        replace=[
            (
                "return msgspec.structs.replace(state, pending_call_ids=pending)",
                """
                msgspec.structs.force_setattr(state, "pending_call_ids", pending)
                return state
                """,
            )
        ],
    ),
    Mistake(
        lab="9.1",
        name="changes only the status at run_end",
        why="Half an answer of a cancelled run stays on the screen of an idle agent.",
        replace=[
            (
                'return AgentState("idle", event.result.messages, None, event.result.status)',
                """
                return msgspec.structs.replace(
                    state,
                    status="idle",
                    messages=event.result.messages,
                    active_run_id=None,
                    last_status=event.result.status,
                )
                """,
            )
        ],
    ),
]

TWO_RUNS = [
    Mistake(
        lab="9.2",
        name="clears the owner again after run_end",
        why="The listener of run_end has started run 2 by then, and its record is thrown away: a third prompt gets in.",
        replace=[("run.stream.close(result)", "self._active = None; run.stream.close(result)")],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="queues the second prompt for the caller",
        why="Two parts of a program believe they own one conversation, and neither is told.",
        replace=[
            (
                'self._check_can_start("prompt()")',
                """
                if self._active is not None:
                    self._queue.append(QueuedMessage("follow_up", UserMessage(text)))
                    return self._active.stream
                self._check_can_start("prompt()")
                """,
            )
        ],
        red="test_two_runs_share_one_transcript_and_a_second_owner_is_refused_at_once",
    ),
    Mistake(
        lab="9.2",
        name="claims in the run's own task",
        why="Until the task begins, everybody who asks finds an idle agent.",
        replace=[
            ("self._active = run", "pass"),
            ("result = None", "self._active, result = run, None"),
        ],
        red="test_two_runs_share_one_transcript_and_a_second_owner_is_refused_at_once",
    ),
    Mistake(
        lab="9.2",
        name="clears the owner after run_end and not before",
        why="A listener of run_end that starts the next run is refused by a run that is over.",
        replace=[
            (
                """
                if self._active is run:
                    self._active = None
                """,
                "",
            ),
            ("run.stream.close(result)", "run.stream.close(result); self._active = None"),
        ],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="reads the run's input back from the state",
        why="The state follows the dispatched events: while run_end is being told, it knows nothing of the new prompt.",
        replace=[
            ("self._owner.start(self._run, run, context)", "self._owner.start(self._run, run, self._state.messages)")
        ],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="keeps the run's transcript after run_end was told",
        why="A listener of run_end has started run 2, and its input is overwritten by what run 1 ended with.",
        replace=[
            ("self._messages = result.messages", "pass"),
            ("run.stream.close(result)", "run.stream.close(result); self._messages = result.messages"),
        ],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="reduces the event and forgets to keep the state",
        why="The agent's state stays idle for ever, and every screen that reads it shows an agent that does nothing.",
        replace=[("self._state = reduce_agent_state(self._state, event)", "reduce_agent_state(self._state, event)")],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="brings an event to the listeners first and to the state last",
        why="A listener of run_end reads a state that still says running.",
        replace=[
            ("self._state = reduce_agent_state(self._state, event)", "pass"),
            (
                "run.stream.publish(event)",
                "self._state = reduce_agent_state(self._state, event); run.stream.publish(event)",
            ),
        ],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="tells of run_start before it claims",
        why="A listener of run_start finds an idle agent and starts a second run.",
        replace=[
            ("self._active = run", "pass"),
            ("run.emit(RunStartEvent, context)", "run.emit(RunStartEvent, context); self._active = run"),
        ],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="keeps the transcript of completed runs only",
        why="A run that fails after its tools have run takes the record of their effects with it.",
        replace=[
            (
                "self._messages = result.messages",
                'self._messages = result.messages if result.status == "completed" else self._messages[:1]',
            )
        ],
        red="test_two_runs_share_one_transcript_and_a_second_owner_is_refused_at_once",
    ),
    Mistake(
        lab="9.2",
        name="names no way out in the busy error",
        why="The caller learns that it is wrong and not what to call instead.",
        replace=[
            ("Correct it with steer(), ", "Try again later."),
            ('"say more after it with follow_up(), or await its stream first."', '""'),
        ],
    ),
    Mistake(
        lab="9.2",
        name="starts every run from an empty transcript",
        why="Run 2 knows nothing of run 1: the model is asked out of the blue.",
        replace=[("context = self._messages.append(", "context = Transcript().append(")],
    ),
    Mistake(
        lab="9.2",
        name="shows the new messages only once they are told",
        why="A listener of run_start hears of an input that the agent does not seem to own.",
        replace=[("self._messages = context", "pass")],
        red="test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone",
    ),
    Mistake(
        lab="9.2",
        name="forgets to take over what the run has left",
        why="The failed answer is in the result, and the agent has never heard of it.",
        replace=[("self._messages = result.messages", "pass")],
        red="test_two_runs_share_one_transcript_and_a_second_owner_is_refused_at_once",
    ),
    Mistake(
        lab="9.2",
        name="leaves message_accepted to the loop",
        why="The loop tells of what enters at a boundary; a prompt enters before it, and nobody would hear of it.",
        replace=[("run.emit(MessageAcceptedEvent, each.kind, each.message, context)", "pass")],
        red="test_two_runs_share_one_transcript_and_a_second_owner_is_refused_at_once",
    ),
]

THREE_EXITS = [
    Mistake(
        lab="9.3",
        name="lets a listener's error through",
        why="A bug in somebody's log window fails the run, and the listeners after it hear nothing.",
        replace=[("self._errors.record(event, error)", "raise")],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="swallows a listener's error",
        why="The listener's author never learns of the bug.",
        replace=[("self._errors.record(event, error)", "pass")],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="unsubscribes every registration of the function",
        why="One window closes, and the other, which shows the same agent by the same function, goes dark.",
        replace=[
            (
                "self._subscriptions.remove(registered)",
                "self._subscriptions = [each for each in self._subscriptions if each.listener != listener]",
            )
        ],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="unsubscribes somebody else the second time",
        why="A clean-up that runs twice is common, and must not end the registration of another.",
        replace=[
            (
                """
                if registered is not None:
                    self._subscriptions.remove(registered)
                    registered = None
                """,
                """
                found = [each for each in self._subscriptions if each.listener == listener]
                if found:
                    self._subscriptions.remove(found[0])
                """,
            )
        ],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="tells the listeners before the state",
        why="A listener that draws the state draws the one from before the event.",
        replace=[
            ("self._state = reduce_agent_state(self._state, event)", "pass"),
            (
                "run.stream.publish(event)",
                "run.stream.publish(event); self._state = reduce_agent_state(self._state, event)",
            ),
        ],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="goes over the live list of listeners",
        why="When one leaves while an event is told, the next one misses the event.",
        replace=[("in tuple(self._subscriptions):", "in self._subscriptions:")],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="skips a listener that another one has unsubscribed meanwhile",
        why="Who hears an event would depend on the order in which the others happen to be called.",
        replace=[
            (
                "self._notify(subscription, event)",
                "subscription in self._subscriptions and self._notify(subscription, event)",
            )
        ],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="hands out its own record of errors",
        why="What a caller keeps goes on changing, and what a caller clears is lost to everybody.",
        replace=[("return self._errors.last", "return self._errors._last")],
        red="test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody",
    ),
    Mistake(
        lab="9.3",
        name="keeps a list of messages in the state",
        why="Whoever reads the state can change it for everybody else who reads it.",
        replace=[
            ('"idle", event.result.messages, None', '"idle", list(event.result.messages), None'),
        ],
        red="test_what_leaves_the_agent_cannot_be_used_to_change_it",
    ),
]

CANCEL = [
    Mistake(
        lab="9.4",
        name="says that every cancel was accepted",
        why="Whoever asks second believes that the run will give their reason.",
        replace=[
            (
                "return self._active is not None and self._active.signal.cancel(reason)",
                "return self._active is not None and (self._active.signal.cancel(reason) or True)",
            )
        ],
        red="test_a_cancel_before_the_first_request_sends_none_and_spares_run_2",
    ),
    Mistake(
        lab="9.4",
        name="frees the owner when the cancel is asked for",
        why="Tools of run 1 still run, and run 2 may start beside them.",
        replace=[
            (
                "return self._active is not None and self._active.signal.cancel(reason)",
                """
                run, self._active = self._active, None
                return run is not None and run.signal.cancel(reason)
                """,
            )
        ],
        red="test_a_cancel_before_the_first_request_sends_none_and_spares_run_2",
    ),
    Mistake(
        lab="9.4",
        name="ends the run itself",
        why="The loop ends it a second time: two run_end, and a transcript from before its tools were paired.",
        replace=[
            (
                "return self._active is not None and self._active.signal.cancel(reason)",
                """
                run = self._active
                accepted = run is not None and run.signal.cancel(reason)
                if run is not None:
                    self._settle(run, RunResult("cancelled", self._messages, reason=reason))
                return accepted
                """,
            )
        ],
    ),
    Mistake(
        lab="9.4",
        name="uses one Signal for all runs of the agent",
        why="A Signal is set once: after the first cancel every later run is cancelled at its start.",
        replace=[
            ("self._active = run", 'self._active = run; run.signal = self.__dict__.setdefault("_signal", run.signal)')
        ],
        red="test_a_cancel_before_the_first_request_sends_none_and_spares_run_2",
    ),
    Mistake(
        lab="9.4",
        name="sets a flag of its own that nobody reads",
        why="Neither model nor tools hear of the cancel, and the run ends when it likes.",
        replace=[
            (
                "return self._active is not None and self._active.signal.cancel(reason)",
                """
                self._cancelled = self._active is not None
                return self._cancelled
                """,
            )
        ],
        red="test_a_cancel_before_the_first_request_sends_none_and_spares_run_2",
    ),
    Mistake(
        lab="9.4",
        name="forgets the reason",
        why="Nobody can tell the user's stop from a timeout.",
        replace=[("self._active.signal.cancel(reason)", "self._active.signal.cancel()")],
        red="test_a_cancel_before_the_first_request_sends_none_and_spares_run_2",
    ),
    Mistake(
        lab="9.4",
        name="cancels a new Signal in the place of the run's",
        why="The loop, the model and the tools were given the old one, and wait on it for ever.",
        replace=[
            (
                "return self._active is not None and self._active.signal.cancel(reason)",
                """
                if self._active is None:
                    return False
                self._active.signal = Signal()
                return self._active.signal.cancel(reason)
                """,
            )
        ],
        red="test_a_cancel_before_the_first_request_sends_none_and_spares_run_2",
    ),
]

BOUNDARIES = [
    Mistake(
        lab="9.5",
        name="takes the newest message first",
        why="The second correction stands before the first one.",
        replace=[
            ("for each in self._queue if each.kind == kind]", "for each in reversed(self._queue) if each.kind == kind]")
        ],
        red="test_steering_enters_in_order_after_the_whole_round_of_tools",
    ),
    Mistake(
        lab="9.5",
        name="takes whatever waits, steering or not",
        why="A follow-up is said in the middle of the task it was to follow.",
        replace=[("taken = [each for each in self._queue if each.kind == kind]", "taken = list(self._queue)")],
        red="test_steering_comes_before_the_run_may_end_and_follow_ups_after_it",
    ),
    Mistake(
        lab="9.5",
        name="says it at once",
        why="It stands between an assistant's calls and their results, and is lost when the turn ends.",
        replace=[
            ("self._queue.append(QueuedMessage(kind, message))", "self._messages = self._messages.append(message)")
        ],
        red="test_steering_enters_in_order_after_the_whole_round_of_tools",
    ),
    Mistake(
        lab="9.5",
        name="merges all that waits into one message",
        why="Two things that a person said become one that nobody said.",
        replace=[
            (
                "return taken",
                """
                if taken:
                    text = " ".join(each.message.text for each in taken)
                    return [QueuedMessage(kind, UserMessage(text))]
                return taken
                """,
            )
        ],
        red="test_steering_enters_in_order_after_the_whole_round_of_tools",
    ),
    Mistake(
        lab="9.5",
        name="takes one message a boundary, whatever the policy",
        why="Run-owned queues are read whole; the second correction reaches the model one answer too late.",
        replace=[("if self._policy.one_at_a_time:", "if taken:")],
        red="test_steering_enters_in_order_after_the_whole_round_of_tools",
    ),
    Mistake(
        lab="9.5",
        name="leaves in the queue what it has taken",
        why="The same correction is said at every boundary.",
        replace=[("self._queue.remove(each)", "pass")],
    ),
    Mistake(
        lab="9.5",
        name="queues while idle",
        why="A run-owned message waits for a run that nobody has started, unnoticed.",
        replace=[
            (
                "self._active is not None and not self._active.signal.cancelled",
                "self._active is None or not self._active.signal.cancelled",
            ),
        ],
        red="test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none",
    ),
    Mistake(
        lab="9.5",
        name="queues after the cancel was accepted",
        why="The caller believes that the message will be read, and the run reads nothing more.",
        replace=[("self._active is not None and not self._active.signal.cancelled", "self._active is not None")],
        red="test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none",
    ),
    Mistake(
        lab="9.5",
        name="leaves what nobody read to the next run",
        why="Run 2 corrects something that only run 1 was asked.",
        replace=[
            ("if self._policy.outlive_run or not self._queue:", "if True:"),
        ],
        red="test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none",
    ),
    Mistake(
        lab="9.5",
        name="drops what nobody read without a word",
        why="What a person has said is gone, and nobody can tell them.",
        replace=[("return msgspec.structs.replace(result, dropped=dropped)", "return result")],
        red="test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none",
    ),
    Mistake(
        lab="9.5",
        name="looks what was dropped when run_end has been told",
        why="run_end tells of nothing dropped, and what its listener has queued for run 2 is gone.",
        replace=[
            ("result = self._with_dropped(result)", "pass"),
            ("run.stream.close(result)", "run.stream.close(self._with_dropped(result))"),
        ],
        red="test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none",
    ),
    Mistake(
        lab="9.5",
        name="lists what was dropped and empties the queue when run_end has been told",
        why="What a listener of run_end has queued for run 2 is thrown away with the rest of run 1.",
        replace=[
            (
                """
                dropped = tuple(self._queue)
                self._queue.clear()
                """,
                "dropped = tuple(self._queue)",
            ),
            (
                "run.stream.close(result)",
                "self._queue = self._queue if self._policy.outlive_run else []; run.stream.close(result)",
            ),
        ],
        red="test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none",
    ),
    Mistake(
        lab="9.5",
        name="empties the queue of cancelled runs only",
        why="A run that fails leaves its queue to the next one.",
        replace=[
            ("if self._policy.outlive_run or not self._queue:", 'if result.status != "cancelled" or not self._queue:')
        ],
        red="test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none",
    ),
]

OUTLIVING = [
    Mistake(
        lab="9.6",
        name="takes one message because the agent owns them",
        why="Who owns what waits and how many a boundary takes are two questions, and a policy answers each.",
        replace=[("if self._policy.one_at_a_time:", "if self._policy.outlive_run:")],
        red="test_one_steering_that_was_queued_while_idle_joins_the_next_prompt",
    ),
    Mistake(
        lab="9.6",
        name="takes all that waits at a boundary",
        why="The model answers the last one, and the others have no answer of their own.",
        replace=[("taken = taken[:1]", "taken = taken[:]")],
        red="test_a_boundary_takes_one_message_and_steering_goes_before_follow_ups",
    ),
    Mistake(
        lab="9.6",
        name="leaves idle steering to the first boundary",
        why="The first answer is written without the correction that was there before it was asked for.",
        replace=[
            (
                'return self._take("steering")',
                "return []",
            )
        ],
        red="test_one_steering_that_was_queued_while_idle_joins_the_next_prompt",
    ),
    Mistake(
        lab="9.6",
        name="lets all idle steering join the prompt",
        why="One boundary takes one message, and the start of a run is a boundary.",
        replace=[
            (
                "*self._joining_steering()]",
                "*self._joining_steering(), *self._joining_steering()]",
            )
        ],
        red="test_one_steering_that_was_queued_while_idle_joins_the_next_prompt",
    ),
    Mistake(
        lab="9.6",
        name="says the steering before the prompt that it joins",
        why="A correction comes before what it corrects.",
        replace=[
            (
                '[QueuedMessage("prompt", message), *self._joining_steering()]',
                '[*self._joining_steering(), QueuedMessage("prompt", message)]',
            )
        ],
        red="test_one_steering_that_was_queued_while_idle_joins_the_next_prompt",
    ),
    Mistake(
        lab="9.6",
        name="tells a joined steering as a prompt",
        why="A screen shows a correction as a question of its own.",
        replace=[("run.emit(MessageAcceptedEvent, each.kind,", 'run.emit(MessageAcceptedEvent, "prompt",')],
        red="test_one_steering_that_was_queued_while_idle_joins_the_next_prompt",
    ),
    Mistake(
        lab="9.6",
        name="tells each message of the input with the transcript up to it",
        why="What a run starts with enters at once: a reader of the prompt's event would miss what the model will see.",
        replace=[
            ("for each in inputs:", "for number, each in enumerate(inputs, 1):"),
            (
                "each.kind, each.message, context)",
                "each.kind, each.message, context[: len(context) - len(inputs) + number])",
            ),
        ],
        red="test_one_steering_that_was_queued_while_idle_joins_the_next_prompt",
    ),
    Mistake(
        lab="9.6",
        name="takes the steering before it looks whether a run is active",
        why="A refused prompt() has eaten a correction, and nobody reads it any more.",
        replace=[
            (
                'self._check_can_start("prompt()")',
                'joining = self._joining_steering(); self._check_can_start("prompt()")',
            ),
            ("*self._joining_steering()]", "*joining]"),
        ],
        red="test_what_waits_survives_cancel_failure_and_max_steps_until_it_is_cleared",
    ),
    Mistake(
        lab="9.6",
        name="forgets to empty the queue that it hands over",
        why="The caller has taken a message back, and it is said all the same.",
        replace=[("self._queue.clear()\nreturn cleared", "return cleared")],
        red="test_what_waits_survives_cancel_failure_and_max_steps_until_it_is_cleared",
    ),
    Mistake(
        lab="9.6",
        name="hands over the very list that it then empties",
        why="The caller gets nothing, and the messages are gone.",
        replace=[("cleared = tuple(self._queue)", "cleared = self._queue")],
        red="test_what_waits_survives_cancel_failure_and_max_steps_until_it_is_cleared",
    ),
    Mistake(
        lab="9.6",
        name="closes the queues after a cancel",
        why="What somebody says while the run winds down is refused, though the next run would have read it.",
        replace=[("return True", "return self._active is None or not self._active.signal.cancelled")],
        red="test_what_waits_survives_cancel_failure_and_max_steps_until_it_is_cleared",
    ),
    Mistake(
        lab="9.6",
        name="drops what waits at the end of every run",
        why="A cancelled run takes with it what the caller wanted to go on with.",
        replace=[("if self._policy.outlive_run or not self._queue:", "if not self._queue:")],
        red="test_what_waits_survives_cancel_failure_and_max_steps_until_it_is_cleared",
    ),
]

CONTINUE = [
    Mistake(
        lab="9.7",
        name="refuses an empty transcript before it looks at what waits",
        why="Steering that waits is something to go on with, whatever the transcript holds.",
        replace=[("if not inputs and tail is None:", "if tail is None:")],
        red="test_continue_reads_steering_first_and_needs_a_follow_up_after_a_finished_answer",
    ),
    Mistake(
        lab="9.7",
        name="takes a failed answer for a finished one",
        why="After a dead line nobody can go on without saying something new.",
        replace=[("isinstance(tail, AssistantMessage) and not is_error(tail)", "isinstance(tail, AssistantMessage)")],
        red="test_continue_asks_again_where_the_last_message_has_no_answer_yet",
    ),
    Mistake(
        lab="9.7",
        name="says the last question once more",
        why="The transcript holds a question twice that was asked once.",
        replace=[
            (
                "return inputs",
                """
                if not inputs and isinstance(tail, UserMessage):
                    inputs = [QueuedMessage("prompt", tail)]
                return inputs
                """,
            )
        ],
        red="test_continue_asks_again_where_the_last_message_has_no_answer_yet",
    ),
    Mistake(
        lab="9.7",
        name="reads a follow-up whatever the tail is",
        why="The follow-up is said before the question in front of it has an answer.",
        replace=[
            (
                "if not inputs and isinstance(tail, AssistantMessage) and not is_error(tail):",
                "if not inputs and self._queue:",
            )
        ],
        red="test_continue_asks_again_where_the_last_message_has_no_answer_yet",
    ),
    Mistake(
        lab="9.7",
        name="leaves steering for the first boundary",
        why="After a finished answer the model is asked again with nothing new to say.",
        replace=[('inputs = self._take("steering")', "inputs: list[QueuedMessage] = []")],
        red="test_continue_reads_steering_first_and_needs_a_follow_up_after_a_finished_answer",
    ),
    Mistake(
        lab="9.7",
        name="takes from the queue before it looks whether a run is active",
        why="A refused call has thrown a message away.",
        replace=[
            (
                """
                self._check_can_start("continue_()")
                inputs = self._take_for_tail()
                """,
                """
                inputs = self._take_for_tail()
                self._check_can_start("continue_()")
                """,
            )
        ],
        red="test_continue_refuses_what_it_cannot_go_on_with_and_changes_nothing",
    ),
    Mistake(
        lab="9.7",
        name="asks again after a finished answer",
        why="The model is made to talk to itself.",
        replace=[("if not inputs:\n    raise AgentIdleError(", "if False:\n    raise AgentIdleError(")],
        red="test_continue_refuses_what_it_cannot_go_on_with_and_changes_nothing",
    ),
    Mistake(
        lab="9.7",
        name="starts an empty transcript with a follow-up",
        why="There is nothing that the message could follow, and a refusal was promised.",
        replace=[
            (
                "if not inputs and isinstance(tail, AssistantMessage) and not is_error(tail):",
                "if not inputs and (tail is None or isinstance(tail, AssistantMessage) and not is_error(tail)):",
            )
        ],
        red="test_continue_refuses_what_it_cannot_go_on_with_and_changes_nothing",
    ),
    Mistake(
        lab="9.7",
        name="looks at no tail at all when nothing was ever said",
        why="A request without a message goes to the model.",
        replace=[("if not inputs and tail is None:", "if False:")],
        red="test_continue_refuses_what_it_cannot_go_on_with_and_changes_nothing",
    ),
]

ASYNC_LISTENERS = [
    Mistake(
        lab="9.8",
        name="starts a task for each event",
        why="Whichever task is quicker comes first: a listener hears the end before the beginning.",
        replace=[
            (
                "subscription.worker.add(event, returned)",
                "type(subscription.worker)(self._owner, self._errors).add(event, returned)",
            )
        ],
        red="test_an_async_listener_hears_in_order_and_nobody_waits_for_it",
    ),
    Mistake(
        lab="9.8",
        name="has one worker for all async listeners",
        why="A slow listener holds up all others.",
        replace=[("subscription.worker.add(event, returned)", "self._subscriptions[0].worker.add(event, returned)")],
        red="test_an_async_listener_hears_in_order_and_nobody_waits_for_it",
    ),
    Mistake(
        lab="9.8",
        name="calls async listeners and awaits nothing",
        why="A coroutine that nobody awaits does nothing.",
        replace=[("subscription.worker.add(event, returned)", "returned.close()  # type: ignore")],
        red="test_an_async_listener_hears_in_order_and_nobody_waits_for_it",
    ),
    Mistake(
        lab="9.8",
        name="swallows what an async listener raises",
        why="The listener's author never learns of the bug.",
        replace=[
            (
                "subscription.worker.add(event, returned)",
                """
                async def quiet() -> None:
                    try:
                        await returned
                    except Exception:
                        pass

                subscription.worker.add(event, quiet())
                """,
            )
        ],
        red="test_an_async_listener_may_await_its_own_run_and_what_it_raises_is_recorded",
    ),
    Mistake(
        lab="9.8",
        name="says True to every cancel of an active run",
        why="Two callers believe that they have stopped the run, for two reasons, and one is wrong.",
        replace=[
            (
                "return self._active is not None and self._active.signal.cancel(reason)",
                """
                if self._active is not None:
                    self._active.signal.cancel(reason)
                return self._active is not None
                """,
            )
        ],
        red="test_cancel_is_true_exactly_when_it_was_accepted",
    ),
    Mistake(
        lab="9.8",
        name="takes cancels until run_end has been told",
        why="The outcome is decided and being told: True would promise a cancelled run, and nobody could keep it.",
        replace=[
            (
                """
                if self._active is run:
                    self._active = None
                """,
                "",
            ),
            (
                "run.stream.close(result)",
                "self._active = None if self._active is run else self._active; run.stream.close(result)",
            ),
        ],
        red="test_cancel_is_true_exactly_when_it_was_accepted",
    ),
    Mistake(
        lab="9.8",
        name="fails when there is nothing to cancel",
        why="Whoever presses stop a moment too late gets an AttributeError.",
        replace=[
            (
                "self._active is not None and self._active.signal.cancel(reason)",
                "self._active.signal.cancel(reason)  # type: ignore",
            )
        ],
        red="test_cancel_is_true_exactly_when_it_was_accepted",
    ),
    Mistake(
        lab="9.8",
        name="lets a completed answer win over the cancel",
        why="The caller was told True, and then reads that the run completed.",
        replace=[
            (
                "result = self._with_dropped(result)",
                """
                last = result.messages[-1] if result.messages else None
                if isinstance(last, AssistantMessage) and not last.calls:
                    result = RunResult("completed", result.messages, last.text, last.stop_reason)
                result = self._with_dropped(result)
                """,
            )
        ],
        red="test_an_accepted_cancel_wins_over_the_ending_that_races_it",
    ),
]

LIMITS = [
    Mistake(
        lab="9.9",
        name="counts the places in the queue alone",
        why="A message is accepted that the full transcript can never take.",
        replace=[("if self.room < 1:", "if len(self._queue) >= self._limits.queued:")],
        red="test_a_message_is_refused_when_it_is_queued_and_not_stranded_later",
    ),
    Mistake(
        lab="9.9",
        name="counts the places in the transcript alone",
        why="A queue that nobody reads grows without an end.",
        replace=[
            (
                "return max(0, min(pairs, self._limits.queued) - len(self._queue))",
                "return max(0, pairs - len(self._queue))",
            )
        ],
        red="test_a_full_queue_refuses_the_next_message_and_keeps_what_waits",
    ),
    Mistake(
        lab="9.9",
        name="owes room",
        why="Nobody can use -61 places; a screen that shows what is left shows nonsense.",
        replace=[("return max(0, min(pairs,", "return (min(pairs,")],
        red="test_a_response_whose_calls_do_not_fit_runs_no_tool_and_is_not_adopted",
    ),
    Mistake(
        lab="9.9",
        name="lets one message too many wait",
        why="Room 0 is no room.",
        replace=[("if self.room < 1:", "if self.room < 0:")],
        red="test_a_full_queue_refuses_the_next_message_and_keeps_what_waits",
    ),
    Mistake(
        lab="9.9",
        name="keeps nothing free for the turn that is active",
        why="The turn takes the room of a message that was accepted.",
        replace=[("turn = self._limits.turn if self._active is not None else 0", "turn = 0")],
        red="test_a_message_is_refused_when_it_is_queued_and_not_stranded_later",
    ),
    Mistake(
        lab="9.9",
        name="lets a prompt take the room of what waits",
        why="What was accepted first is stranded by what came later.",
        replace=[
            (
                "if not self._fits(inputs + 1):",
                "if len(self._messages) + inputs + 1 > self._limits.owned:",
            )
        ],
        red="test_a_message_is_refused_when_it_is_queued_and_not_stranded_later",
    ),
    Mistake(
        lab="9.9",
        name="wants the room of a prompt for continue_() too",
        why="The last message that waits has its room, and continue_() refuses to read it: it is stranded.",
        replace=[
            (
                'self._check_can_start("continue_()")',
                """
                self._check_can_start("continue_()")
                self._check_room_for_run(inputs=1)
                """,
            )
        ],
        red="test_a_message_is_refused_when_it_is_queued_and_not_stranded_later",
    ),
    Mistake(
        lab="9.9",
        name="takes the steering before it asks for room",
        why="A refused prompt() has eaten what was promised a place.",
        replace=[
            (
                "self._check_room_for_run(inputs=1)",
                "joining = self._joining_steering(); self._check_room_for_run(inputs=1)",
            ),
            ("*self._joining_steering()]", "*joining]"),
        ],
        red="test_a_message_is_refused_when_it_is_queued_and_not_stranded_later",
    ),
    Mistake(
        lab="9.9",
        name="asks for no room where continue_() says nothing new",
        why="The model answers, and its answer has no place.",
        replace=[("self._check_room_for_run(inputs=0)", "pass")],
        red="test_a_message_is_refused_when_it_is_queued_and_not_stranded_later",
    ),
    Mistake(
        lab="9.9",
        name="forgets the answer to the results",
        why="The tools run, and then the model's answer to them has no place.",
        replace=[("self._fits(1 + calls + (1 if calls else 0))", "self._fits(1 + calls)")],
        red="test_a_response_whose_calls_do_not_fit_runs_no_tool_and_is_not_adopted",
    ),
    Mistake(
        lab="9.9",
        name="admits every response",
        why="Tools run whose results do not fit into the transcript.",
        replace=[("if not self._fits(1 + calls + (1 if calls else 0)):", "if calls > 128:")],
        red="test_a_response_whose_calls_do_not_fit_runs_no_tool_and_is_not_adopted",
    ),
    Mistake(
        lab="9.9",
        name="admits a response without looking at what waits",
        why="Its results take the room that was promised to a queued message.",
        replace=[
            (
                "if not self._fits(1 + calls + (1 if calls else 0)):",
                "if len(self._messages) + 1 + calls + (1 if calls else 0) > self._limits.owned:",
            )
        ],
        red="test_a_response_whose_calls_do_not_fit_runs_no_tool_and_is_not_adopted",
    ),
]

WAIT_IDLE = [
    Mistake(
        lab="9.10",
        name="waits for one event, made once, again and again",
        why="Once set, it waits for nothing any more: during run 2 it looks and looks, and burns the processor.",
        replace=[
            (
                """
                while agent.is_running:
                    ended = anyio.Event()
                """,
                """
                ended = anyio.Event()
                while agent.is_running:
                """,
            )
        ],
        red="test_wait_idle_looks_again_because_a_listener_may_have_started_run_2",
    ),
    Mistake(
        lab="9.10",
        name="looks once and waits for one run_end",
        why="A listener has started run 2 when run 1 ends, and the waiter believes in an idle agent.",
        replace=[("while agent.is_running:", "if agent.is_running:")],
        red="test_wait_idle_looks_again_because_a_listener_may_have_started_run_2",
    ),
    Mistake(
        lab="9.10",
        name="waits for a run_end even when idle",
        why="No run is there to end, so nobody wakes it.",
        replace=[
            ("while agent.is_running:", "while True:"),
            ("finally:\n    unsubscribe()", "finally:\n    unsubscribe()\nif not agent.is_running:\n    return"),
        ],
        red="test_wait_idle_returns_for_every_waiter_once_the_run_has_settled",
    ),
    Mistake(
        lab="9.10",
        name="looks again and again instead of waiting",
        why="It keeps a processor busy as long as the run lasts.",
        replace=[("ended = anyio.Event()", "await anyio.sleep(0)\ncontinue\nended = anyio.Event()")],
        red="test_wait_idle_returns_for_every_waiter_once_the_run_has_settled",
    ),
    Mistake(
        lab="9.10",
        name="looks again after a little sleep",
        why="Whoever waits learns of the end too late, and a machine that could rest is woken for nothing.",
        replace=[("ended = anyio.Event()", "await anyio.sleep(0.01)\ncontinue\nended = anyio.Event()")],
        red="test_wait_idle_returns_for_every_waiter_once_the_run_has_settled",
    ),
    Mistake(
        lab="9.10",
        name="leaves its listener subscribed",
        why="Each wait adds a listener that is called for ever after.",
        replace=[("    unsubscribe()", "    pass")],
        red="test_wait_idle_returns_for_every_waiter_once_the_run_has_settled",
    ),
    Mistake(
        lab="9.10",
        name="unsubscribes only when it was woken",
        why="A wait that was cancelled, by a timeout around it, leaves its listener behind.",
        replace=[
            (
                """
                try:
                    await ended.wait()
                finally:
                    unsubscribe()
                """,
                """
                await ended.wait()
                unsubscribe()
                """,
            )
        ],
        red="test_wait_idle_returns_for_every_waiter_once_the_run_has_settled",
    ),
    Mistake(
        lab="9.10",
        name="reads the agent's private record",
        why="It works with this Agent and no other; public state and events are all a caller can count on.",
        replace=[("while agent.is_running:", "while agent._active is not None:")],
        red="test_wait_idle_returns_for_every_waiter_once_the_run_has_settled",
    ),
    Mistake(
        lab="9.10",
        name="returns at the first turn_end",
        why="A turn is not a run: the model may be asked again.",
        replace=[
            ("while agent.is_running:", "if agent.is_running:"),
            ('if event.type == "run_end"', 'if event.type == "turn_end"'),
        ],
    ),
]

MISTAKES = [
    *REDUCER,
    *TWO_RUNS,
    *THREE_EXITS,
    *CANCEL,
    *BOUNDARIES,
    *OUTLIVING,
    *CONTINUE,
    *ASYNC_LISTENERS,
    *LIMITS,
    *WAIT_IDLE,
]

ALTERNATIVES = [
    Alternative(
        name="clears its owner without a second look, at the one place where it is its own for certain",
        replace=[
            (
                """
                if self._active is run:
                    self._active = None
                """,
                "self._active = None",
            )
        ],
    ),
    Alternative(
        name="waits for idle by the state's word",
        replace=[("while agent.is_running:", 'while agent.state.status == "running":')],
    ),
    Alternative(
        name="gives up the list of listeners instead of changing it",
        replace=[
            ("self._subscriptions.append(registered)", "self._subscriptions = [*self._subscriptions, registered]"),
            (
                "self._subscriptions.remove(registered)",
                "self._subscriptions = [each for each in self._subscriptions if each is not registered]",
            ),
            ("in tuple(self._subscriptions):", "in self._subscriptions:"),
        ],
    ),
    Alternative(
        name="a different Agent: two queues, listeners by number, a reducer that matches", file="different_09.py"
    ),
]

"""Write intervals: the first write of an object does not wait, and only recent ones are remembered."""

from contrail_config.kubernetes.write_intervals import WriteIntervals

A, B = ("bucket", "a"), ("bucket", "b")


def test_an_object_waits_for_the_rest_of_the_interval_since_its_last_write() -> None:
    intervals = WriteIntervals(10.0)
    assert intervals.remaining(A, now=0.0) == 0.0
    intervals.written(A, now=1.0)
    assert intervals.remaining(A, now=4.0) == 7.0
    assert intervals.remaining(A, now=12.0) == 0.0
    intervals.written(A, now=12.0)
    assert intervals.remaining(A, now=12.0) == 10.0


def test_objects_do_not_wait_for_each_other() -> None:
    intervals = WriteIntervals(10.0)
    intervals.written(A, now=0.0)
    assert intervals.remaining(B, now=0.0) == 0.0


def test_only_the_writes_of_the_last_interval_are_remembered() -> None:
    intervals = WriteIntervals(10.0)
    for second in range(1000):
        intervals.written(("bucket", str(second)), now=float(second))
    assert len(intervals) == 10
    assert intervals.remaining(("bucket", "995"), now=999.0) == 6.0


def test_an_object_that_is_written_again_within_its_interval_is_remembered_once() -> None:
    intervals = WriteIntervals(10.0)
    intervals.written(A, now=0.0)
    intervals.written(B, now=1.0)
    intervals.written(A, now=5.0)
    intervals.written(B, now=11.0)
    assert len(intervals) == 2
    assert intervals.remaining(A, now=11.0) == 4.0

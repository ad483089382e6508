from hypothesis import given
from hypothesis import strategies as st

from angle_data.disjoint import DisjointSets


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12))), st.randoms())
def test_sets_are_the_connected_components_whatever_the_order_of_links(links, random):
    neighbours = {node: {node} for node in range(13)}
    for a, b in links:
        neighbours[a].add(b)
        neighbours[b].add(a)

    def reachable(node):
        found, todo = {node}, [node]
        while todo:
            new = neighbours[todo.pop()] - found
            found |= new
            todo += new
        return found

    shuffled = list(links)
    random.shuffle(shuffled)
    sets = DisjointSets(range(13))
    for a, b in shuffled:
        sets.join(b, a)
    assert [sets.leader(node) for node in range(13)] == [min(reachable(node)) for node in range(13)]

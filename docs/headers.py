"""The public headers as pages' sections: what each says at its top, then what it declares, as directives of Breathe."""
import collections
import itertools
import pathlib
import xml.etree.ElementTree as ElementTree

KINDS = {"enum": "doxygenenum", "typedef": "doxygentypedef", "variable": "doxygenvariable",
         "function": "doxygenfunction"}


def opening(header):
    """Returns the comment at the top of a header, which is Markdown."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), header.read_text().splitlines())
    return "\n".join(line[3:] for line in lines)


def declarations(xml):
    """Returns by header [(line, directive, name)] of what namespace troupe holds; what is in a class comes with it."""
    found = collections.defaultdict(list)
    for compound in ElementTree.parse(xml / "index.xml").getroot().iter("compound"):
        name = compound.findtext("name")
        if compound.get("kind") in ("class", "struct") and name.startswith("troupe::") and name.count("::") == 1:
            place = ElementTree.parse(xml / f"{compound.get('refid')}.xml").getroot().find("compounddef/location")
            found[pathlib.Path(place.get("file")).name].append((int(place.get("line")),
                                                                "doxygen" + compound.get("kind"), name))
    members = [m for m in ElementTree.parse(xml / "namespacetroupe.xml").getroot().iter("memberdef")
               if "<" not in m.findtext("name")]
    names = collections.Counter(member.findtext("name") for member in members)
    for member in members:
        name, place = f"troupe::{member.findtext('name')}", member.find("location")
        # overloads are told apart by their parameters
        if member.get("kind") == "function" and names[member.findtext("name")] > 1:
            parameters = (" ".join("".join(p.find("type").itertext()).split()) for p in member.iter("param"))
            name += "(" + ", ".join(parameters) + ")"
        found[pathlib.Path(place.get("file")).name].append((int(place.get("line")), KINDS[member.get("kind")], name))
    return found


def sections(include, xml):
    """Returns the Markdown of all headers in the folder `include`, in their order."""
    found = declarations(pathlib.Path(xml))
    parts = []
    for header in sorted(include.glob("*.hpp")):
        parts.append(f"## troupe/{header.name}\n\n{opening(header)}\n")
        for _, directive, name in sorted(found[header.name]):
            members = "\n:members:\n:undoc-members:" if directive in ("doxygenclass", "doxygenstruct") else ""
            parts.append(f"```{{{directive}}} {name}{members}\n```\n")
    return "\n".join(parts)

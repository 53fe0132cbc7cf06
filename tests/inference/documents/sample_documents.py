"""Small documents in code, some as awkward as real ones are."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from lxml import etree

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
WORD_NAMESPACES = (
    f'xmlns:w="{W}" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)
_WORD_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"


def make_zip(parts: Mapping[str, str | bytes], stored: tuple[str, ...] = ()) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            kind = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2020, 5, 17, 1, 2, 4)), content, kind)
    return out.getvalue()


def unzip(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def make_word(
    body: str, *, parts: Mapping[str, tuple[str, str]] | None = None, namespace: str = W
) -> bytes:
    """Return a Word document; `parts` are the content type and the XML of others, by name."""
    others = parts or {}
    overrides = "".join(
        f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, (kind, _) in others.items()
    )
    found = {
        "[Content_Types].xml": '<?xml version="1.0" encoding="UTF-8"?>'
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_WORD_TYPES}.document.main+xml"/>'
        f"{overrides}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
        f"<w:document {WORD_NAMESPACES.replace(W, namespace)}><w:body>{body}</w:body></w:document>",
        "word/vbaProject.bin": b"\x00\x01macro",
        **{name: xml for name, (_, xml) in others.items()},
    }
    return make_zip(found)


def word_part(name: str, xml: str) -> tuple[str, str]:
    """Return a header, footer, … as `make_word` takes it."""
    tag = {"header": "hdr", "footer": "ftr"}.get(name, name)
    return f"{_WORD_TYPES}.{name}+xml", f"<w:{tag} {WORD_NAMESPACES}>{xml}</w:{tag}>"


def run(text: str, properties: str = "", extra: str = "") -> str:
    formatting = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    body = f'<w:t xml:space="preserve">{text}</w:t>' if text else ""
    return f"<w:r>{formatting}{body}{extra}</w:r>"


def field(code: str, result: str) -> str:
    """Return a field as three and more runs."""
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    return (
        mark.format("begin")
        + f"<w:r><w:instrText> {code} </w:instrText></w:r>"
        + mark.format("separate")
        + result
        + mark.format("end")
    )


def paragraph(*content: str, properties: str = "") -> str:
    return f"<w:p>{properties}{''.join(content)}</w:p>"


# Bodies of Word documents, each with what its units say.
WORD_BODIES: dict[str, tuple[str, list[str]]] = {
    "plain": (paragraph(run("One two.")), ["One two."]),
    "nothing": (paragraph() + paragraph(run("12 – 3")) + "<w:sectPr/>", []),
    "bold": (
        paragraph(run("One "), run("two", "<w:b/>"), run(" three.")), ["One two three."],
    ),
    "noise": (
        paragraph(
            run("Don", '<w:lang w:val="de-DE"/>'), '<w:proofErr w:type="spellStart"/>',
            run("au", '<w:noProof/>'), '<w:proofErr w:type="spellEnd"/>',
            run("dampf", '<w:spacing w:val="-1"/>'), "<w:r><w:lastRenderedPageBreak/></w:r>",
        ),
        ["Donaudampf"],
    ),
    "link": (
        paragraph(
            run("See "),
            '<w:hyperlink r:id="rId9" w:tooltip="The tip">',
            run("our page", '<w:rStyle w:val="Hyperlink"/>'), "</w:hyperlink>", run(" now."),
        ),
        ["See our page now.", "The tip"],
    ),
    "link field": (
        paragraph(run("See "), field('HYPERLINK "http://x.de"', run("our page")), run(" now.")),
        ["See our page now."],
    ),
    "page number": (
        paragraph(run("Page "), field("PAGE", run("3")), run(" of "), field("NUMPAGES", run("9"))),
        ["Page {1} of {2}"],
    ),
    "simple field": (
        paragraph(run("Page "), f'<w:fldSimple w:instr=" PAGE ">{run("3")}</w:fldSimple>'),
        ["Page {1}"],
    ),
    "index entry": (
        paragraph(
            run("A word"), '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
            '<w:r><w:instrText>XE "word"</w:instrText></w:r>',
            '<w:r><w:fldChar w:fldCharType="end"/></w:r>', run(" here."),
        ),
        ["A word here."],
    ),
    "contents": (
        paragraph(
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC \\o</w:instrText>'
            '</w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>',
            '<w:hyperlink w:anchor="_Toc1">', run("1."), run("", "", "<w:tab/>"),
            run("First chapter"), run("", "", "<w:tab/>"), field("PAGEREF _Toc1", run("4")),
            "</w:hyperlink>",
        )
        + paragraph(run("Second"), '<w:r><w:fldChar w:fldCharType="end"/></w:r>'),
        ["First chapter", "Second"],
    ),
    "tab and break": (
        paragraph(run("Name:"), run("", "", "<w:tab/>"), run("Peter", "<w:b/>", "<w:br/>"),
                  run("Berlin")),
        ["Name:\tPeter\nBerlin"],
    ),
    "page break": (
        paragraph(run("Before"), run("", "", '<w:br w:type="page"/>'), run(" after")),
        ["Before after"],
    ),
    "hyphens": (
        paragraph("<w:r><w:t>E</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>"), ["E\u2011mail"],
    ),
    "changes": (
        paragraph(
            run("It is "), '<w:ins w:id="1" w:author="A">', run("very "), "</w:ins>",
            '<w:del w:id="2" w:author="A"><w:r><w:delText>not </w:delText></w:r></w:del>',
            run("good."),
        ),
        ["It is very good."],
    ),
    "note": (
        paragraph(
            run("A claim"), run("", '<w:vertAlign w:val="superscript"/>',
                                '<w:footnoteReference w:id="2"/>'), run(" here."),
        ),
        ["A claim here."],
    ),
    "control": (
        paragraph(
            run("Dear "), "<w:sdt><w:sdtPr><w:alias w:val='n'/></w:sdtPr><w:sdtContent>",
            run("reader"), "</w:sdtContent></w:sdt>", run(", hello."),
        )
        + f"<w:sdt><w:sdtContent>{paragraph(run('In a block'))}</w:sdtContent></w:sdt>",
        ["Dear reader, hello.", "In a block"],
    ),
    "bookmarks": (
        paragraph(
            '<w:bookmarkStart w:id="0" w:name="_Toc1"/>', run("A "),
            '<w:bookmarkStart w:id="1" w:name="b"/>', run("title"), '<w:bookmarkEnd w:id="1"/>',
            run(" here"), '<w:bookmarkEnd w:id="0"/>',
        ),
        ["A title here"],
    ),
    "crossing": (
        paragraph(
            '<w:bookmarkStart w:id="0" w:name="a"/>', run("one "),
            '<w:commentRangeStart w:id="5"/>', run("two "), '<w:bookmarkEnd w:id="0"/>',
            run("three"), '<w:commentRangeEnd w:id="5"/>',
            run("", "", '<w:commentReference w:id="5"/>'), run(" four."),
        ),
        ["one two three four."],
    ),
    "table": (
        f"<w:tbl><w:tblPr><w:tblCaption w:val='A caption'/></w:tblPr><w:tr><w:tc>"
        f"{paragraph(run('Cell one'))}</w:tc><w:tc><w:tbl><w:tr><w:tc>"
        f"{paragraph(run('Inside'))}</w:tc></w:tr></w:tbl>{paragraph()}</w:tc></w:tr></w:tbl>",
        ["A caption", "Cell one", "Inside"],
    ),
    "text box": (
        paragraph(
            run("Outside "), "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing>"
            "<wp:inline><wp:docPr id='1' name='Box 1' descr='A box' title='T x'/>"
            f"<w:txbxContent>{paragraph(run('In the '), run('box', '<w:b/>'))}</w:txbxContent>"
            "</wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape alt='A box'>"
            f"<w:txbxContent>{paragraph(run('In the '), run('box', '<w:b/>'))}</w:txbxContent>"
            "</v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>", run("text."),
        ),
        ["Outside text.", "A box", "T x", "In the box", "A box", "In the box"],
    ),
    "formula": (
        paragraph(run("Let "), "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>", run(" be small.")),
        ["Let {1} be small."],
    ),
    "braces": (paragraph(run("Say {1}, page "), field("PAGE", run("3"))), ["Say {1}, page {2}"]),
    "pretty printed": (
        "\n  <w:p>\n    <w:r>\n      <w:t>One</w:t>\n    </w:r>\n    <!-- c --><?p i?>\n  </w:p>\n",
        ["One"],
    ),
    "smart tag": (
        paragraph("<w:smartTag w:element='p'><w:smartTagPr/>", run("Rome"), "</w:smartTag>",
                  run(" is old.")),
        ["Rome is old."],
    ),
    "deep": (
        paragraph("<w:smartTag>" * 60, run("deep"), "</w:smartTag>" * 60, run("shallow")),
        ["shallow"],
    ),
    "properties": (paragraph(run("All", "<w:b/>"), properties="<w:pPr/>"), ["All"]),
}  # fmt: skip


def make_opendocument(
    body: str, *, kind: str = "text", styles: str = "", header: str = "", title: str = ""
) -> bytes:
    """Return an OpenDocument file with a body, automatic styles, a header, and a title."""
    names = ("office", "text", "table", "draw", "style", "svg", "xlink", "fo", "presentation")
    special = {
        "svg": "svg-compatible", "fo": "xsl-fo-compatible",
    }  # fmt: skip
    namespaces = " ".join(
        f'xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{special.get(one, one)}:1.0"'
        for one in names
    )
    namespaces += (
        ' xmlns:officeooo="http://openoffice.org/2009/office"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    )
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    return make_zip(
        {
            "mimetype": mimetype,
            "content.xml": f"<office:document-content {namespaces}>"
            f"<office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {namespaces}><office:master-styles>"
            f"<style:master-page><style:header>{header}</style:header></style:master-page>"
            "</office:master-styles></office:document-styles>",
            "meta.xml": f"<office:document-meta {namespaces}><office:meta><dc:title>{title}"
            "</dc:title></office:meta></office:document-meta>",
            "Pictures/a.png": b"\x89PNG not really",
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="{manifest}"><m:file-entry '
            f'm:full-path="/" m:media-type="{mimetype}"/></m:manifest>',
        },
        stored=("mimetype",),
    )


_SPAN = '<text:span text:style-name="{}">{}</text:span>'
OPENDOCUMENT_BODIES: dict[str, tuple[str, list[str]]] = {
    "plain": ("<text:p>One two.</text:p><text:h>A title</text:h>", ["One two.", "A title"]),
    "span": (f"<text:p>One {_SPAN.format('T1', 'two')} three.</text:p>", ["One two three."]),
    "noise": (
        f"<text:p>Don{_SPAN.format('R1', 'au')}{_SPAN.format('R2', 'dampf')}</text:p>",
        ["Donaudampf"],
    ),
    "nested": (
        f"<text:p>One {_SPAN.format('T1', 'two ' + _SPAN.format('T2', 'three'))} four</text:p>",
        ["One two three four"],
    ),
    "link": (
        f'<text:p>See <text:a xlink:href="x">our {_SPAN.format("T1", "page")}</text:a>.</text:p>',
        ["See our page."],
    ),
    "spaces": (
        "<text:p>One<text:s/> two<text:s text:c='3'/>three\n   four </text:p>",
        ["One  two   three four "],
    ),
    "tab": ("<text:p>Name:<text:tab/>Peter<text:line-break/>Berlin</text:p>",
            ["Name:\tPeter\nBerlin"]),
    "note": (
        "<text:p>A claim<text:note text:note-class='footnote'><text:note-citation>1"
        "</text:note-citation><text:note-body><text:p>The note.</text:p></text:note-body>"
        "</text:note> here.</text:p>",
        ["A claim here.", "The note."],
    ),
    "list": (
        "<text:list><text:list-item><text:p>First</text:p><text:list><text:list-item>"
        "<text:p>Inner</text:p></text:list-item></text:list></text:list-item></text:list>",
        ["First", "Inner"],
    ),
    "table": (
        "<table:table><table:table-row><table:table-cell office:value-type='string'>"
        "<text:p>Cell</text:p></table:table-cell><table:table-cell office:value-type='date'>"
        "<text:p>1. May</text:p></table:table-cell></table:table-row></table:table>",
        ["Cell"],
    ),
    "frame": (
        "<text:p>A <draw:frame draw:name='no'><draw:text-box><text:p>In a box</text:p>"
        "</draw:text-box><svg:title>A picture</svg:title><svg:desc>Of a dog</svg:desc>"
        "</draw:frame>picture.</text:p>",
        ["A picture.", "In a box", "A picture", "Of a dog"],
    ),
    "field": (
        "<text:p>Page <text:page-number>3</text:page-number> of <text:page-count>9"
        "</text:page-count></text:p>",
        ["Page {1} of {2}"],
    ),
    "changes": (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>Gone</text:p>"
        "</text:deletion></text:changed-region></text:tracked-changes><text:p>It "
        "<text:change-start/>stays<text:change-end/>.<text:change/></text:p>",
        ["It stays."],
    ),
    "comment": (
        "<text:p>A <office:annotation><text:p>No</text:p></office:annotation>word.</text:p>",
        ["A word."],
    ),
    "bookmark": (
        "<text:p><text:bookmark-start text:name='a'/>A title<text:bookmark-end text:name='a'/>"
        "<text:soft-page-break/> here</text:p>",
        ["A title here"],
    ),
    "xml comment": ("<text:p>One <!-- no -->two<?no no?></text:p>", ["One two"]),
}  # fmt: skip
OPENDOCUMENT_STYLES = (
    '<style:style style:name="T1" style:family="text"><style:text-properties '
    'fo:font-weight="bold"/></style:style>'
    '<style:style style:name="T2" style:family="text"><style:text-properties '
    'fo:font-style="italic"/></style:style>'
    '<style:style style:name="R1" style:family="text"><style:text-properties '
    'officeooo:rsid="0012"/></style:style>'
    '<style:style style:name="R2" style:family="text"><style:text-properties '
    'officeooo:rsid="0013" fo:language="de" fo:country="DE"/></style:style>'
)


PAGE = """<?xml version="1.0" encoding="utf-8"?>
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><head><title>One</title>
<link rel="stylesheet" href="a.css"/><script src="a.js"/></head>
<body><h1 id="c1">The first chapter</h1>
<p>It was a <em>dark</em> and stormy&#160;night<a href="n#1"><sup>1</sup></a>.<br/>Rain fell.</p>
<p/><p><img src="a.png" alt="A storm"/></p></body></html>
"""


def make_epub(
    *, version: str = "3.0", page: str = PAGE, extra: Mapping[str, str | bytes] | None = None
) -> bytes:
    """Return a book with one page, a table of contents of each kind, a picture and metadata."""
    navigation = (
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
        '<body><nav epub:type="toc"><ol><li><a href="one.xhtml">The first chapter</a></li>'
        "</ol></nav></body></html>"
    )
    return make_zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
            'container" version="1.0"><rootfiles><rootfile full-path="OEBPS/book.opf" '
            'media-type="application/oebps-package+xml"/></rootfiles></container>',
            "OEBPS/book.opf": f"""<?xml version='1.0' encoding='utf-8'?>
<package xmlns="http://www.idpf.org/2007/opf" version="{version}">
 <metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A storm &amp; more</dc:title>
 <dc:creator>Ann Author</dc:creator><dc:language>en</dc:language>
 <dc:description>&lt;p&gt;A &lt;b&gt;dark&lt;/b&gt; book.&lt;/p&gt;</dc:description></metadata>
 <manifest><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
 <item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
 <item id="one" href="text/one%20a.xhtml" media-type="application/xhtml+xml"/>
 <item id="css" href="a.css" media-type="text/css"/></manifest>
 <spine toc="ncx"><itemref idref="one"/></spine></package>""",
            "OEBPS/text/one a.xhtml": page,
            "OEBPS/nav.xhtml": navigation,
            "OEBPS/toc.ncx": '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "x.dtd"><ncx>'
            "<docTitle><text>A storm</text></docTitle><docAuthor><text>Ann Author</text>"
            "</docAuthor><navMap><navPoint><navLabel><text>The first chapter</text></navLabel>"
            "</navPoint></navMap></ncx>",
            "OEBPS/a.css": "p { color: red }",
            "OEBPS/a.png": b"\x89PNG not really",
            **(extra or {}),
        },
        stored=("mimetype",),
    )


def canonical(content: bytes) -> bytes:
    """Return XML in a form in which what means the same is equal."""
    found: bytes = etree.tostring(etree.fromstring(content), method="c14n")
    return found
